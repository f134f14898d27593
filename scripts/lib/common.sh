# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: GPL-2.0
# Sourced by every script: paths of a base, messages, options, and the checks
# that turn a missing tool or a full disk into one clear message.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BASE=${BASE:-7.3}
OUT=$(realpath -m "${OUT:-$top/out}")
JOBS=${JOBS:-$(nproc)}

# The stack itself; the self-tests point STACK at small fakes.
PATCHES=${STACK:-$top}/patches/$BASE
SERIES=${STACK:-$top}/series/$BASE

# What is made of it.
basedir=$OUT/$BASE
linux=$basedir/linux
base_tree=$basedir/base
provenance=$basedir/provenance

# What an outer make or git passes on is not meant for those that are run here.
unset MAKEFLAGS MFLAGS MAKELEVEL GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# Git must neither ask questions nor depend on the user's configuration.
export GIT_TERMINAL_PROMPT=0
git_as_us=(-c user.name=parallel-padata -c user.email=stack@localhost
	-c commit.gpgsign=false -c core.hooksPath=/dev/null -c gc.auto=0
	-c core.autocrlf=false -c advice.detachedHead=false)

say() { printf '%s\n' "$*" >&2; }

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# The header comment of the script, without the SPDX line.
usage() {
	awk 'NR > 2 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
	exit 0
}

bad_option() {
	printf '%s: unknown option "%s"; see %s --help\n' "$(basename "$0")" "$1" "$0" >&2
	exit 2
}

# take VARIABLE --option VALUE...: the option's value, or exit 2 if there is none.
take() {
	if (($# < 3)); then
		printf '%s: option %s needs a value; see %s --help\n' "$(basename "$0")" "$2" "$0" >&2
		exit 2
	fi
	printf -v "$1" '%s' "$3"
}

# need TOOL...: every tool must be there.
need() {
	local tool missing=()
	for tool; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	((${#missing[@]} == 0)) || die "missing: ${missing[*]}; run \"make setup\" to install what is needed"
}

# at_once COMMAND ITEM...: the command for each of the items, all at the same time; 1 if one of them failed.
# What ends the script ends them as well: in the background they would not hear of Ctrl-C.
at_once() {
	local command=$1 item pid pids=() failed=0
	shift
	trap 'kill "${pids[@]}" 2>/dev/null; exit 143' TERM
	for item; do
		{
			trap - INT QUIT TERM
			"$command" "$item"
		} &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
	trap - TERM
	return "$failed"
}

# lock PATH: this process and what it starts have it for themselves: two builds in one folder spoil it.
lock() {
	local fd
	[[ :${LOCKED:-}: != *":$1:"* ]] || return 0
	mkdir -p "$(dirname "$1")"
	exec {fd}>"${1%/}.lock"
	flock -n "$fd" || {
		say "waiting for who has $1"
		flock "$fd" || die "$1.lock cannot be locked"
	}
	export LOCKED=${LOCKED:-}:$1
}

# need_space DIR GIB WHAT: refuse early rather than fail half-way.
need_space() {
	local dir=$1 free
	mkdir -p "$dir"
	free=$(df --output=avail -BM "$dir" | tail -1 | tr -dc 0-9)
	((free >= $2 * 1024)) ||
		die "$3 needs $2 GiB in $dir, which has $((free / 1024)); free some or set OUT= to another disk"
}

# base_fact KEY: a value of series/X.Y.base.
base_fact() {
	[[ -f $SERIES.base ]] || die "unknown base \"$BASE\": there is no $SERIES.base"
	sed -n "s/^$1=//p" "$SERIES.base"
}

# The patch names of the series, in order.
series_patches() {
	if [[ -f $SERIES ]]; then sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$SERIES"; fi
}

# Changes whenever a patch or the order does.
series_hash() {
	{
		series_patches
		series_patches | while IFS= read -r p; do cat "$PATCHES/$p"; done
	} | sha256sum | cut -c1-12
}

need_tree() {
	git -C "$linux" rev-parse -q --verify base >/dev/null 2>&1 ||
		die "there is no tree of $BASE in $basedir; run \"make fetch\""
}

# version_of TREE: X.Y.Z of a kernel tree, or nothing.
version_of() {
	[[ -f $1/Makefile && -f $1/Kbuild && -f $1/MAINTAINERS ]] || return 0
	awk -F' *= *' '/^VERSION/ { v = $2 } /^PATCHLEVEL/ { p = $2 } /^SUBLEVEL/ { s = $2 }
		NR > 6 { exit } END { if (v != "") print v "." p "." s }' "$1/Makefile"
}
