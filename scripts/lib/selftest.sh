# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0
# Sourced by scripts/selftest: its tests, functions t_NAME that run in an empty
# $scratch and fail at the first command that fails.

s() { "$top/scripts/$1" "${@:2}"; }

# fails PATTERN COMMAND...: it must exit non-zero, with one message that matches.
fails() {
	local out
	if out=$("${@:2}" 2>&1); then
		echo "succeeded: ${*:2}"
		return 1
	fi
	grep -qE -e "$1" <<<"$out" && return
	printf '%s\n' "no \"$1\" in the message of ${*:2}:" "$out"
	return 1
}

# no COMMAND...: it must fail ("! COMMAND" would not end a test).
no() { if "$@"; then return 1; fi; }

# fake_kernel DIR [VERSION]: what a kernel tree is recognised by, and two files to patch.
fake_kernel() {
	local v=${2:-7.3.4}
	mkdir -p "$1/mm" "$1/kernel"
	printf 'VERSION = %s\nPATCHLEVEL = %s\nSUBLEVEL = %s\n' "${v%%.*}" "$(cut -d. -f2 <<<"$v")" "${v##*.}" >"$1/Makefile"
	printf '%s\n' 'mrproper:' $'\trm -f built.o' 'tinyconfig:' $'\techo CONFIG_A=y >$(O)/.config' \
		'olddefconfig:' $'\tsed -i /DROPPED/d $(O)/.config' >>"$1/Makefile"
	touch "$1/Kbuild" "$1/Kconfig" "$1/MAINTAINERS"
	seq 1 30 >"$1/mm/hugetlb.c"
	seq 1 30 >"$1/kernel/padata.c"
}

fake_git_kernel() {
	fake_kernel "$@"
	git -C "$1" init -q -b main
	git -C "$1" add -A
	git -C "$1" commit -q -m "Linux ${2:-7.3.4}"
}

# fake_stack: a fetched tree, and a stack of two patches, the first with notes.
fake_stack() {
	fake_git_kernel "$scratch/kdir"
	mkdir -p "$STACK/series"
	printf 'version=7.3.4\ngit_tag=v7.3.4\ndebian_package=\n' >"$STACK/series/7.3.base"
	KDIR=$scratch/kdir s fetch
	linux=$OUT/7.3/linux
	edit 10 ten "padata: Say ten: it's more" kernel/padata.c
	git -C "$linux" notes add -m "Checked with care.

checkpatch: SOME_TYPE: because"
	edit 20 twenty "mm/hugetlb: say twenty" mm/hugetlb.c
	s refresh
	patch1=$STACK/patches/7.3/padata-say-ten-it-s-more.patch
	patch2=$STACK/patches/7.3/mm-hugetlb-say-twenty.patch
}

# edit LINE TEXT SUBJECT FILE: a commit in the tree.
edit() {
	sed -i "$1s/.*/$2/" "$linux/$4"
	git -C "$linux" commit -q -a -m "$3" -m "A body."
}

state_of() { (cd "$1" && find . -path ./.git -prune -o -type f -printf '%p %T@ %s\n' | sort | sha256sum); }

t_help_and_options() {
	local f
	for f in "$top"/scripts/*; do
		[[ -f $f ]] || continue
		"$f" --help | grep -q '^Usage: ' || { echo "$f --help" && return 1; }
		local rc=0
		"$f" --no-such-option >/dev/null 2>&1 || rc=$?
		[[ $rc == 2 ]] || { echo "$f --no-such-option exits $rc" && return 1; }
	done
}

t_missing_tool_is_named() {
	mkdir "$scratch/bin"
	ln -s /usr/bin/* /bin/* "$scratch/bin/" 2>/dev/null || true
	rm -f "$scratch/bin/qemu-system-x86_64" "$scratch/bin/git"
	PATH=$scratch/bin fails 'missing: qemu-system-x86_64; run "make setup"' s boot --kernel /dev/null --scenario smoke --log x
	PATH=$scratch/bin fails 'missing: git' s fetch
}

t_fetch_from_git_kdir() {
	local before
	fake_git_kernel "$scratch/kdir"
	echo changed >>"$scratch/kdir/mm/hugetlb.c"
	before=$(state_of "$scratch/kdir")
	mkdir "$scratch/stack"
	KDIR=$scratch/kdir s fetch 2>"$scratch/err"
	grep -q 'uncommitted changes' "$scratch/err"
	[[ "$(state_of "$scratch/kdir")" == "$before" ]]
	grep -qx source=kdir "$OUT/7.3/provenance"
	grep -qx version=7.3.4 "$OUT/7.3/provenance"
	no grep -q "$scratch" "$OUT/7.3/provenance"
	[[ "$(tail -1 "$OUT/7.3/base/mm/hugetlb.c")" == 30 ]]
	git -C "$OUT/7.3/linux" rev-parse -q --verify base
	KDIR=$scratch/kdir s fetch
	fake_git_kernel "$scratch/other" 7.3.5
	KDIR=$scratch/other fails 'came from another source than KDIR' s fetch
}

t_fetch_from_plain_kdir() {
	local before
	fake_kernel "$scratch/kdir"
	touch "$scratch/kdir/built.o"
	before=$(state_of "$scratch/kdir")
	KDIR=$scratch/kdir s fetch
	[[ "$(state_of "$scratch/kdir")" == "$before" && ! -e $OUT/7.3/linux/built.o ]]
}

t_fetch_refuses_wrong_kdir() {
	KDIR=$scratch/nowhere fails 'is not a folder' s fetch
	mkdir "$scratch/empty"
	KDIR=$scratch/empty fails 'is not a kernel source tree' s fetch
	fake_kernel "$scratch/old" 6.12.9
	KDIR=$scratch/old fails 'is Linux 6.12.9, but the base is 7.3' s fetch
	BASE=9.9 fails 'unknown base' s fetch
	[[ ! -e $OUT/7.3/linux ]]
}

t_fetch_from_stable_git() {
	fake_git_kernel "$scratch/upstream"
	git -C "$scratch/upstream" tag v7.3.4
	git clone -q --bare "$scratch/upstream" "$scratch/stable.git"
	mkdir -p "$STACK/series"
	printf 'git_tag=v7.3.4\n' >"$STACK/series/7.3.base"
	STABLE_GIT=file://$scratch/stable.git s fetch
	grep -qx source=git "$OUT/7.3/provenance"
	[[ "$(git -C "$OUT/7.3/linux" rev-parse base)" == "$(git -C "$scratch/upstream" rev-parse HEAD)" ]]
}

t_fetch_without_any_source() {
	mkdir -p "$STACK/series"
	printf 'git_tag=v7.3.4\n' >"$STACK/series/7.3.base"
	fails 'no source for Linux 7.3; check the network, or set KDIR=' s fetch
	[[ ! -e $OUT/7.3/linux && ! -e $OUT/7.3/fetch.tmp ]]
}

t_fetch_interrupted_leaves_nothing() {
	local pid
	fake_kernel "$scratch/kdir"
	printf 'VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nmrproper:\n\ttouch %s; sleep 2\n' "$scratch/started" >"$scratch/kdir/Makefile"
	KDIR=$scratch/kdir "$top/scripts/fetch" &
	pid=$!
	while [[ ! -e $scratch/started ]]; do sleep 0.05; done
	kill "$pid"
	no wait "$pid"
	[[ ! -e $OUT/7.3/linux && ! -e $OUT/7.3/fetch.tmp && ! -e $OUT/7.3/provenance ]]
	rm "$scratch/kdir/Makefile"
	fake_kernel "$scratch/kdir"
	KDIR=$scratch/kdir s fetch
}

t_full_disk_is_noticed() {
	fake_kernel "$scratch/kdir"
	KDIR=$scratch/kdir FETCH_GIB=99999999 fails 'needs 99999999 GiB in .*set OUT=' s fetch
	fake_stack
	BUILD_GIB=99999999 fails 'building base-bench needs' s build --tree base --config bench
}

t_refresh_after_no_edit_changes_nothing() {
	fake_stack
	local before commits
	before=$(state_of "$STACK")
	s tree
	s refresh
	[[ "$(state_of "$STACK")" == "$before" ]]
	FORCE=1 s tree
	commits=$(git -C "$linux" rev-parse stack)
	rm "$OUT/7.3/synced"
	s tree
	s refresh
	[[ "$(state_of "$STACK")" == "$before" && "$(git -C "$linux" rev-parse stack)" == "$commits" ]]
	[[ "$(head -1 "$STACK/series/7.3")" == "# padata" ]]
}

t_tree_is_the_same_everywhere() {
	fake_stack
	local first
	rm -rf "$OUT"
	KDIR=$scratch/kdir s fetch
	s tree
	first=$(git -C "$linux" rev-parse stack)
	rm -rf "$OUT"
	git config --global user.name someone-else
	git config --global format.signoff true
	KDIR=$scratch/kdir s fetch
	s tree
	[[ "$(git -C "$linux" rev-parse stack)" == "$first" ]]
	s refresh
}

t_notes_and_sections_survive() {
	fake_stack
	printf '# padata\n%s\n\n# hugetlb boot\n%s\n' "${patch1##*/}" "${patch2##*/}" >"$STACK/series/7.3"
	rm -rf "$OUT"
	KDIR=$scratch/kdir s fetch
	s tree
	git -C "$linux" commit -q --amend -m "mm/hugetlb: say twenty louder"
	edit 25 more "mm/hugetlb: say more" mm/hugetlb.c
	s refresh
	[[ ! -e $patch2 ]]
	grep -qx 'checkpatch: SOME_TYPE: because' "$patch1"
	diff "$STACK/series/7.3" - <<-EOF
		# padata
		${patch1##*/}
		mm-hugetlb-say-twenty-louder.patch
		mm-hugetlb-say-more.patch
	EOF
}

t_tree_keeps_what_is_not_refreshed() {
	fake_stack
	local head
	edit 1 one "mm/hugetlb: say one" mm/hugetlb.c
	head=$(git -C "$linux" rev-parse HEAD)
	fails 'make refresh' s tree
	[[ "$(git -C "$linux" rev-parse HEAD)" == "$head" ]]
	FORCE=1 s tree
	[[ "$(git -C "$linux" rev-parse HEAD)" != "$head" ]]
	echo x >>"$linux/mm/hugetlb.c"
	sed -i 's/A body/Another body/' "$patch2"
	fails 'not committed' s tree
}

t_refresh_keeps_edited_patches() {
	fake_stack
	sed -i 's/A body/Another body/' "$patch2"
	edit 1 one "mm/hugetlb: say one" mm/hugetlb.c
	fails 'were edited since' s refresh
	grep -q 'Another body' "$patch2"
}

t_refresh_refuses_sign_off() {
	fake_stack
	git -C "$linux" commit -q --amend -s --no-edit
	fails 'has a sign-off' s refresh
}

t_tree_names_the_patch_that_fails() {
	fake_stack
	local head
	head=$(git -C "$linux" rev-parse HEAD)
	sed -i 's/^-20/-nineteen/' "$patch2"
	fails 'stopped at mm-hugetlb-say-twenty.patch' s tree
	fails 'Hunk #1 FAILED' s tree
	[[ "$(git -C "$linux" rev-parse HEAD)" == "$head" && -z "$(git -C "$linux" status --porcelain)" ]]
}

t_apply_to_git() {
	fake_stack
	KDIR=$scratch/kdir s apply
	[[ "$(git -C "$scratch/kdir" log --format=%s -1)" == "mm/hugetlb: say twenty" ]]
	KDIR=$scratch/kdir fails 'nothing was changed' s apply
	KDIR='' fails 'give KDIR=' s apply
}

t_apply_to_git_refuses() {
	fake_stack
	cd "$scratch/kdir" || return
	echo x >>mm/hugetlb.c
	KDIR=$PWD fails 'has local changes' s apply
	git checkout -q mm/hugetlb.c
	mkdir .git/rebase-apply
	KDIR=$PWD fails 'in the middle of git am or git rebase' s apply
	rmdir .git/rebase-apply
}

t_apply_to_git_fails_whole() {
	local head
	fake_stack
	cd "$scratch/kdir" || return
	sed -i '19s/.*/other/' mm/hugetlb.c
	git commit -q -a -m "Other"
	head=$(git rev-parse HEAD)
	KDIR=$PWD fails 'mm-hugetlb-say-twenty.patch does not apply' s apply
	KDIR=$PWD fails '^ *-20' s apply
	[[ "$(git rev-parse HEAD)" == "$head" && -z "$(git status --porcelain)" && ! -e .git/rebase-apply ]]
}

t_apply_to_plain_tree() {
	local before
	fake_stack
	fake_kernel "$scratch/plain"
	KDIR=$scratch/plain s apply
	grep -qx twenty "$scratch/plain/mm/hugetlb.c"
	before=$(state_of "$scratch/plain")
	KDIR=$scratch/plain fails 'padata-say-ten-it-s-more.patch does not apply' s apply
	fake_kernel "$scratch/fuzz"
	# One line of context differs: patch would take it with fuzz.
	sed -i '23s/.*/other/' "$scratch/fuzz/mm/hugetlb.c"
	KDIR=$scratch/fuzz fails 'mm-hugetlb-say-twenty.patch does not apply' s apply
	no grep -q ten "$scratch/fuzz/kernel/padata.c"
	[[ "$(state_of "$scratch/plain")" == "$before" ]]
}

t_quilt_takes_the_series() {
	command -v quilt >/dev/null || skip "quilt is not installed; run \"make setup\""
	fake_stack
	fake_kernel "$scratch/plain"
	cd "$scratch/plain" || return
	QUILT_PATCHES=$STACK/patches/7.3 QUILT_SERIES=$STACK/series/7.3 quilt --quiltrc - push -a --fuzz=0
	grep -qx twenty mm/hugetlb.c
}

t_configure_names_dropped_options() {
	fake_stack
	mkdir "$scratch/fragments"
	export FRAGMENTS=$scratch/fragments
	touch "$FRAGMENTS/Kconfig.stack"
	echo 'x one' >"$FRAGMENTS/configs"
	echo '*: CONFIG_A=y' >"$FRAGMENTS/expect.config"
	echo 'CONFIG_B=y' >"$FRAGMENTS/one.config"
	s configure --tree base --config x
	echo 'CONFIG_DROPPED=y' >>"$FRAGMENTS/one.config"
	fails 'dropped .*: CONFIG_DROPPED=y' s configure --tree base --config x
	echo 'CONFIG_B=y' >"$FRAGMENTS/one.config"
	echo 'x: CONFIG_A=n' >>"$FRAGMENTS/expect.config"
	fails 'expected by expect.config: CONFIG_A=n, but the final .config has y' s configure --tree base --config x
	fails 'unknown configuration "y"; there are: x' s configure --tree base --config y
}

t_builds_of_a_folder_wait_for_each_other() {
	fake_stack
	mkdir -p "$scratch/f"
	echo CONFIG_B=y >"$scratch/f/a.config"
	touch "$scratch/f/expect.config" "$scratch/f/Kconfig.stack"
	echo 'good a' >"$scratch/f/configs"
	mkdir -p "$OUT/7.3/build"
	(
		lock "$OUT/7.3/build/base-good"
		touch "$scratch/locked"
		# What a script does that has the folder goes on.
		FRAGMENTS=$scratch/f s configure --tree base --config good
		rm -r "$OUT/7.3/build/base-good"
		sleep 1
		no test -e "$OUT/7.3/build/base-good"
	) &
	until [[ -e $scratch/locked ]]; do sleep 0.1; done
	FRAGMENTS=$scratch/f s configure --tree base --config good
	wait $!
}

t_boot_names_what_is_wrong() {
	fails 'no kernel "nowhere"' s boot --kernel nowhere --scenario smoke --log x
	fails 'needs a value' s boot --kernel
}

t_bench_cases_are_patterns() {
	. "$top/scripts/lib/bench.sh"
	local all
	all=$(all_cases)
	# A file that a pattern must not be taken for.
	cd "$scratch" && touch padata-file
	[[ "$(named_cases '*')" == "$all" ]]
	[[ "$(named_cases fallocate-2m 'fallocate-*')" == "fallocate-2m fallocate-1g" ]]
	[[ " $(named_cases 'padata-*') " == *" padata-10ms "* && "$(named_cases 'padata-*')" != *padata-file* ]]
	CASES='boot-2m no-such-*' fails 'unknown case "no-such-\*"; there are: .*boot-2m' s bench
}

# fake_result: two pairs of boots of a case that takes its values from kernel lines and from a program's.
fake_result() {
	local n log
	echo cases=padata-nodes >"$scratch/bench.log"
	for n in 1 2; do
		printf '%s\n' "[    1.5000$n] bench: padata-nodes $((38 + 2 * n)).000 %" >"$scratch/padata-nodes.base.$n.log"
		log=$scratch/padata-nodes.patched.$n.log
		printf '%s\r\n' "[    1.5000$n] bench: padata-nodes 99.000 %" "bench: padata-nodes 7.000 %" \
			"[    1.6000$n] bench: padata-nodes 100.000 %" "[    1.7000$n] bench: padata-nodes 100.000 %" \
			"bench: padata-nodes.traced 9.250 %" >"$log"
	done
}

t_bench_report_reads_logs() {
	fake_result
	s bench --report "$scratch" 2>"$scratch/err"
	grep -qx $'padata-nodes\t%\t2\t41.0\t100.0\t0.41\t-\t-\t4.9\t0.0' "$scratch/bench.tsv"
	grep -qx $'padata-nodes.traced\t%\t2\t-\t9.25\t-\t-\t-\t-\t0.0' "$scratch/bench.tsv"
	grep -qx 'padata-nodes: no "guest padata-nodes.traced" in a base boot' "$scratch/err"
}

# judged PATTERN ARG...: the judge refuses the good log with these, saying so.
judged() { fails "$1" s judge "${@:2}" "$top/tests/selftest/good.log"; }

# What the judge says goes to its output, which "fails" reads too.
t_judge_state() {
	local good=$top/tests/selftest/good.log state='state: node0 2048kB nr=4 free=4 surplus=0'
	echo "$state" >"$scratch/state"
	s judge --state "$scratch/state" --same-state "$good" "$good"
	echo "${state/=4/>=4}" | cut -d' ' -f1-4 >"$scratch/state"
	s judge --state "$scratch/state" "$good"
	echo 'state: node0 2048kB nr>=5' >"$scratch/state"
	judged 'state: missing: .*nr>=5' --state "$scratch/state"
	echo "! $state" >"$scratch/state"
	judged 'state: must not be' --state "$scratch/state"
	sed 's/nr=4/nr=3/' "$good" >"$scratch/other.log"
	judged 'state: differs: .*nr=4 .*, not .*nr=3' --same-state "$scratch/other.log"
	sed "s/^state:.*/&\n&/" "$good" >"$scratch/other.log"
	judged 'state: differs: nothing, not' --same-state "$scratch/other.log"
	fails 'state: differs: .*, not nothing' s judge --same-state "$good" "$scratch/other.log"
	sed 's/=4/=104/g' "$good" >"$scratch/short.log"
	sed 's/104/106/g' "$scratch/short.log" >"$scratch/other.log"
	s judge --same-state "$scratch/other.log" --slack 2 "$scratch/short.log"
	fails 'state: differs' s judge --same-state "$scratch/other.log" --slack 1 "$scratch/short.log"
	sed 's/nr=4/nr=5/' "$good" >"$scratch/other.log"
	judged 'state: differs' --same-state "$scratch/other.log" --slack 2
	grep -v ^state: "$good" >"$scratch/other.log"
	fails 'state: none to compare' s judge --same-state "$scratch/other.log" "$scratch/other.log"
}

# A kernel that panics as wanted, and a second one, which is judged: crashed TEXT... are its last lines.
crashed() {
	printf '%s\n' '[    0.000000] Linux version 7.3.4' 'guest: start demo-test' \
		'[    1.200000] Kernel panic - not syncing: wanted crash' '[    1.200001] Call Trace:' \
		'[    0.000000] Linux version 7.3.4' "$@" >"$scratch/crash.log"
}

t_judge_panic() {
	crashed 'guest: start demo-test' 'guest: done demo-test status=0' 'guest: end'
	s judge --panic 'wanted crash' "$scratch/crash.log"
	fails 'panic: missing: other crash' s judge --panic 'other crash' "$scratch/crash.log"
	judged 'panic: missing: wanted crash' --panic 'wanted crash'
	fails '^panic: Kernel panic - not syncing: wanted' s judge "$scratch/crash.log"
	crashed 'guest: start demo-test' 'guest: done demo-test status=1' 'guest: end'
	fails 'failed: demo-test: status 1' s judge --panic 'wanted crash' "$scratch/crash.log"
	crashed '[    0.500000] WARNING: mm/hugetlb.c:1 at hugetlb_init' 'guest: end'
	fails 'splat: WARNING' s judge --panic 'wanted crash' "$scratch/crash.log"
	crashed '[    0.500000] Kernel panic - not syncing: wanted crash'
	fails '^panic: Kernel panic' s judge --panic 'wanted crash' "$scratch/crash.log"
	crashed 'boot: time limit of 60 s'
	fails 'hang: time limit' s judge --panic 'wanted crash' "$scratch/crash.log"
	sed -i '/Call Trace/q' "$scratch/crash.log"
	fails 'truncated: .*, in demo-test' s judge --panic 'wanted crash' "$scratch/crash.log"
	echo 'boot: time limit of 60 s' >>"$scratch/crash.log"
	fails 'hang: time limit of 60 s, in demo-test' s judge --panic 'wanted crash' "$scratch/crash.log"
}

t_expected_of_a_boot() {
	. "$top/scripts/lib/qemu.sh"
	printf '%s\n' 'state: a' '2: state: b' '12: state: c' >"$scratch/x.expect"
	[[ "$(SCENARIOS=$scratch expected x 2)" == $'state: a\nstate: b' ]]
	[[ "$(SCENARIOS=$scratch expected x 1)" == 'state: a' ]]
}
