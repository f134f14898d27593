# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0
# Sourced by scripts/bench: cases, their boots, and the report from the boots' logs.
#
# A case is a file benchmarks/NAME: a scenario as in tests/scenarios (lib/qemu.sh has the
# keys; config=probe for a kernel with kernel/padata_probe.c in it) with
#   boot          kernel command line; more is added: boot_options
#   time          what is measured, as lib/bench-value.awk reads it from the log
#   by_name=1     measured only when CASES names it
#   more=(...)    other values of the same boots, "guest NAME" or "kernel NAME", each a line of the table
# and one of these for the best that the machine allows:
#   limit_time    another value of the base's boots
#   limit_boot    the same value of another boot of the base, with this command line
# A boot's log is $dir/CASE.KIND.N.log, KIND being base, patched or limit. Cases that boot the same
# kernel in the same way share the boot: the log is a link then.

case_file() { printf '%s/benchmarks/%s' "$top" "$1"; }

all_cases() {
	find "$top/benchmarks" -type f -regex '.*/[a-z0-9-]+' -printf '%f\n' | sort | xargs
}

# The cases that are measured without CASES.
default_cases() {
	local name
	for name in $(all_cases); do
		read_case "$name"
		((by_name)) || echo "$name"
	done
}

# named_cases PATTERN...: the cases with such names, each once.
named_cases() {
	local pattern name names=() all
	read -ra all <<<"$(all_cases)"
	for pattern; do
		local found=0
		for name in "${all[@]}"; do
			# shellcheck disable=SC2053
			[[ $name == $pattern ]] || continue
			found=1
			[[ " ${names[*]} " == *" $name "* ]] || names+=("$name")
		done
		((found)) || die "unknown case \"$pattern\"; there are: ${all[*]}"
	done
	echo "${names[*]}"
}

read_case() {
	boot='' time='' by_name=0 limit_time='' limit_boot='' more=() config=bench
	# shellcheck source=/dev/null
	. "$(case_file "$1")"
	[[ -n $time ]] || die "benchmarks/$1 must set time="
}

# Everything that is needed to repeat the run, and the configuration of both kernels.
describe_run() {
	local tree config
	echo "date=$(date -u +%Y-%m-%dT%H:%M:%SZ)"
	sed 's/^/base_/' "$provenance"
	echo "series_hash=$(series_hash)"
	echo "series_patches=$(series_patches | wc -l)"
	echo "runs=$RUNS"
	echo "cases=${cases[*]}"
	echo "host_cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs"
	echo "host_load=$(cut -d' ' -f1 /proc/loadavg)"
	echo "qemu=$(qemu-system-x86_64 --version | head -1)"
	for tree in base patched; do
		echo "${tree}_commit=$(git -C "$linux" rev-parse "$(tree_ref "$tree")")"
		for config in $configs; do
			echo "${tree}_${config}_config_sha256=$(sha256sum <"$(tree_config "$tree" "$config")" | cut -c1-16)"
			cp "$(tree_config "$tree" "$config")" "$dir/$tree-$config.config"
		done
	done
}

tree_ref() { if [[ $1 == base ]]; then echo base; else echo HEAD; fi; }
tree_config() { echo "$basedir/build/$1-$2/.config"; }

# fail REASON: the case has a "-" for it.
fail() {
	echo "$name: $*" | tee -a "$dir/failed" >&2
	return 1
}

# The lines of a case that say what machine is booted and what runs there.
scenario_of() { grep -vE '^(#|boot=|time=|by_name=|more=|limit_)' "$(case_file "$1")" || true; }

declare -A boots

# trace_eval_init has a worker look through the formats of all trace events, for 30 ms when emulated, just
# when pages are allocated: one of two CPUs is busy then, which only who uses both is slowed down by.
boot_options="initcall_debug loglevel=8 initcall_blacklist=trace_eval_init"

# boot_once KIND N KERNEL COMMAND-LINE
boot_once() {
	local log=$dir/$name.$1.$2.log same
	same=$(printf '%s\n' "$2" "$3" "$4" "$(scenario_of "$name")" | sha256sum | cut -c1-16)
	if [[ -n ${boots[$same]:-} ]]; then
		ln -s "${boots[$same]}" "$log"
		return
	fi
	if ! SCENARIOS=$top/benchmarks "$top/scripts/boot" --kernel "$3" --scenario "$name" --one-backend \
		--append "$4 $boot_options" --log "$log" --timeout 120 >"$dir/boot.out" 2>&1; then
		mv "$log" "$log.failed" 2>/dev/null || true
		fail "$1 boot $2: $(tail -1 "$dir/boot.out")" || return
	fi
	boots[$same]=$(basename "$log")
}

# A time is worth nothing if the pools differ.
same_state() {
	local n=$1
	cmp -s <(grep '^state:' "$dir/$name.base.$n.log") <(grep '^state:' "$dir/$name.patched.$n.log") && return
	mv "$dir/$name.patched.$n.log" "$dir/$name.patched.$n.log.failed"
	fail "patched boot $n: its pools are not those of the base"
}

# Base and patched in turn; the first failure ends the case, its other numbers stay.
run_case() {
	local name=$1 n
	read_case "$name"
	say "bench: $name"
	for ((n = 1; n <= RUNS; n++)); do
		boot_once base "$n" "${kernel["base-$config"]}" "$boot" || return 0
		boot_once patched "$n" "${kernel["patched-$config"]}" "$boot" || return 0
		same_state "$n" || return 0
		# Three of these are enough for a median.
		[[ -z $limit_boot ]] || ((n > 3)) ||
			boot_once limit "$n" "${kernel["base-$config"]}" "$limit_boot" || return 0
	done
}

bench_value() {
	awk -v spec="$1" -f "$top/scripts/lib/median.awk" -f "$top/scripts/lib/bench-value.awk" "$2"
}

bench_table() { awk -f "$top/scripts/lib/median.awk" -f "$top/scripts/lib/bench-table.awk" "$@"; }

# values DIR NAME KIND SPEC [LABEL [ROW]]: a line "ROW LABEL VALUE UNIT" for each log that has the value.
values() {
	local log value
	for log in "$1/$2.$3".*.log; do
		[[ -f $log ]] || continue
		value=$(bench_value "$4" "$log")
		if [[ -n $value ]]; then
			echo "${6:-$2} ${5:-$3} $value"
		else
			echo "$2: no \"$4\" in a $3 boot" >>"$1/missing"
		fi
	done
}

all_values() {
	local name row
	sed -n 's/^cases=//p' "$1/bench.log" | xargs -n1 | while IFS= read -r name; do
		read_case "$name"
		echo "$name"
		values "$1" "$name" base "$time"
		values "$1" "$name" patched "$time"
		[[ -z $limit_time ]] || values "$1" "$name" base "$limit_time" limit
		[[ -z $limit_boot ]] || values "$1" "$name" limit "$time"
		for row in "${more[@]}"; do
			echo "${row#* }"
			values "$1" "$name" base "$row" base "${row#* }"
			values "$1" "$name" patched "$row" patched "${row#* }"
		done
	done
}

# Command line of QEMU for every boot, as scripts/boot leaves it in the log.
commands() {
	local log
	for log in "$1"/*.log; do
		[[ -L $log || $log == */bench.log ]] || printf '%s: %s\n' "$(basename "$log")" "$(sed -n 's/^qemu: //p;T;q' "$log")"
	done
}

# Every value that a program in the guest or the kernel printed, as a table.
printed_values() {
	local log from metric
	for log in "$1"/*.base.*.log "$1"/*.patched.*.log; do
		[[ -f $log && ! -L $log ]] || continue
		awk '{ from = sub(/^\[ *[0-9]+\.[0-9]+\] /, "") ? "kernel" : "guest" }
			$1 == "bench:" && !seen[$2]++ { print from, $2 }' "$log" | while read -r from metric; do
			echo "$metric $(basename "$log" | cut -d. -f2) $(bench_value "$from $metric" "$log")"
		done
	done | bench_table | column -t -s $'\t'
}

# report DIR: bench.tsv, the table, the plot and what is missing, from the logs alone.
report() {
	rm -f "$1/missing"
	all_values "$1" >"$1/values"
	bench_table "$1/values" >"$1/bench.tsv"
	column -t -s $'\t' "$1/bench.tsv"
	echo "values are medians; spreads (max - min) / median in per cent; - was not measured, see bench.log"
	sed -n 's/^host_load=\(0*[1-9].*\)/note: the machine was busy before the run: load \1/p' "$1/bench.log"
	reasons "$1" >&2
	plot "$1"
}

# Why a case has a "-": boots that failed, and logs without the value.
reasons() {
	cat "$1/failed" "$1/missing" 2>/dev/null | sort -u || true
}

plot() {
	awk -F"\t" '$2 == "ms" && $4 != "-" { n++ } END { exit !n }' "$1/bench.tsv" || return 0
	command -v gnuplot >/dev/null || return 0
	gnuplot -e "dir='$1'" "$top/scripts/lib/bench.gnuplot" || say "no plot: gnuplot failed"
}
