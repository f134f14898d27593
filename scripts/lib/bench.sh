# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0
# Sourced by scripts/bench: cases, their boots, and the report from the boots' logs.
#
# A case is a file benchmarks/NAME of shell assignments:
#   scenario      topology in tests/scenarios
#   append        added to the kernel command line
#   run           guest program with arguments; without one the boot itself is measured
#   time          what is measured, as lib/bench-value.awk reads it
# and one of these for the best that the machine allows:
#   limit         another value of the same boots
#   limit_append, limit_scenario    the same time of another boot of the base kernel
# A boot's log is $dir/CASE.KIND.N.log, KIND being base, patched or limit.

case_file() { printf '%s/benchmarks/%s' "$top" "$1"; }

all_cases() {
	find "$top/benchmarks" -type f -regex '.*/[a-z0-9-]+' -printf '%f\n' | sort | xargs
}

read_case() {
	scenario='' append='' run='' time='' limit='' limit_append='' limit_scenario=''
	# shellcheck source=/dev/null
	. "$(case_file "$1")"
	[[ -n $scenario && -n $time ]] || die "benchmarks/$1 must set scenario= and time="
	limit_scenario=${limit_scenario:-$scenario}
}

# Everything that is needed to repeat the run, and the configuration of both kernels.
describe_run() {
	local tree
	echo "date=$(date -u +%Y-%m-%dT%H:%M:%SZ)"
	sed 's/^/base_/' "$provenance"
	echo "series_hash=$(series_hash)"
	echo "series_patches=$(series_patches | wc -l)"
	echo "runs=$RUNS"
	echo "cases=${cases[*]}"
	echo "host_cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs"
	echo "qemu=$(qemu-system-x86_64 --version | head -1)"
	for tree in base patched; do
		echo "${tree}_commit=$(git -C "$linux" rev-parse "$(tree_ref "$tree")")"
		echo "${tree}_config_sha256=$(sha256sum <"$(tree_config "$tree")" | cut -c1-16)"
		cp "$(tree_config "$tree")" "$dir/$tree.config"
	done
}

tree_ref() { if [[ $1 == base ]]; then echo base; else echo HEAD; fi; }
tree_config() { echo "$basedir/build/$1-bench/.config"; }

# Log of the boot that has run with the same kernel, scenario, command line and program before.
declare -A booted

# boot_once KIND N KERNEL SCENARIO APPEND
boot_once() {
	local log=$dir/$name.$1.$2.log key="$2|$3|$4|$5|$run"
	if [[ -n ${booted[$key]:-} ]]; then
		ln -s "$(basename "${booted[$key]}")" "$log"
		return
	fi
	if ! "$top/scripts/boot" --kernel "$3" --scenario "$4" --append "$5 initcall_debug loglevel=8" \
		${run:+--run "$run"} --log "$log" --timeout 120 >"$dir/boot.out" 2>&1; then
		echo "$name: $1 boot $2: $(tail -1 "$dir/boot.out")" | tee -a "$dir/failed" >&2
		mv "$log" "$log.failed" 2>/dev/null || true
		return 1
	fi
	booted[$key]=$log
}

# Base and patched in turn; the first failure ends the case, its other numbers stay.
run_case() {
	local name=$1 n
	read_case "$name"
	say "bench: $name"
	for ((n = 1; n <= RUNS; n++)); do
		boot_once base "$n" "$base_kernel" "$scenario" "$append" || return 0
		boot_once patched "$n" "$patched_kernel" "$scenario" "$append" || return 0
		[[ -z $limit_append ]] ||
			boot_once limit "$n" "$base_kernel" "$limit_scenario" "$limit_append" || return 0
	done
}

# values DIR NAME KIND SPEC [LABEL]: a line "NAME LABEL VALUE" for each log that has the value.
values() {
	local log value
	for log in "$1/$2.$3".*.log; do
		[[ -f $log ]] || continue
		value=$(awk -v spec="$4" -f "$top/scripts/lib/bench-value.awk" "$log")
		if [[ -n $value ]]; then
			echo "$2 ${5:-$3} $value"
		else
			echo "$2: no \"$4\" in $(basename "$log")" >>"$1/missing"
		fi
	done
}

all_values() {
	local name
	sed -n 's/^cases=//p' "$1/bench.log" | xargs -n1 | while IFS= read -r name; do
		read_case "$name"
		echo "$name"
		values "$1" "$name" base "$time"
		values "$1" "$name" patched "$time"
		if [[ -n $limit ]]; then
			values "$1" "$name" base "$limit" limit
			values "$1" "$name" base "guest $name.cpu" base-cpu
			values "$1" "$name" patched "guest $name.cpu" patched-cpu
		elif [[ -n $limit_append ]]; then
			values "$1" "$name" limit "$time"
		fi
	done
}

# Command line of QEMU for every boot, as scripts/boot leaves it in the log.
commands() {
	local log
	for log in "$1"/*.log; do
		[[ -L $log || $log == */bench.log ]] || printf '%s: %s\n' "$(basename "$log")" "$(sed -n 's/^qemu: //p;T;q' "$log")"
	done
}

# report DIR: bench.tsv, the table, the plot and what is missing, from the logs alone.
report() {
	rm -f "$1/missing"
	all_values "$1" >"$1/values"
	awk -f "$top/scripts/lib/bench-table.awk" "$1/values" >"$1/bench.tsv"
	column -t -s $'\t' "$1/bench.tsv"
	echo "times are medians, in ms; spreads (max - min) / median in per cent; - was not measured, see bench.log"
	reasons "$1" >&2
	plot "$1"
}

# Why a case has a "-": boots that failed, and logs without the value.
reasons() {
	cat "$1/failed" "$1/missing" 2>/dev/null | sort -u || true
}

plot() {
	command -v gnuplot >/dev/null || return 0
	gnuplot -e "dir='$1'" "$top/scripts/lib/bench.gnuplot" || say "no plot: gnuplot failed"
}
