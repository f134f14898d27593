# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0
# Sourced by selftest, check, each and test: one line a check,
#   ok|FAIL|skip NAME (SECONDS)[: reason]
# A failed check's output follows its line, indented; all output is kept in $OUT/results/check.

logs=$OUT/results/check
failed=0
mkdir -p "$logs"

# skip REASON: ends the check that calls it.
skip() {
	echo "$*"
	exit 77
}

# run NAME COMMAND...: a function or a program; exit 77 and a last line with the reason skips.
# Sets result, always returns 0. To be called plainly: in a condition, "set -e" would not work inside.
run() {
	local name=$1 start=$SECONDS rc log=$logs/$1.log
	shift
	set +e
	(
		set -e
		"$@"
	) >"$log" 2>&1
	rc=$?
	set -e
	case $rc in
	0) result=ok && echo "ok $name ($((SECONDS - start)) s)" ;;
	77) result=skip && echo "skip $name ($((SECONDS - start)) s): $(tail -n 1 "$log")" ;;
	*)
		# In one write: others may be reporting, too.
		cat <<<"FAIL $name ($((SECONDS - start)) s)"$'\n'"$(tail -n 25 "$log" | sed 's/^/    /')"
		result=FAIL failed=1
		;;
	esac
}
