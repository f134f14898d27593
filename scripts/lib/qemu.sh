# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0
# Sourced by scripts/boot: a scenario becomes a QEMU command line.
#
# NAME.boot has kernel command lines, one a boot; NAME.expect what hugestate must print after each
# (see scripts/judge --state), or after the Nth where its line begins with "N: "; scripts/test also compares what
# it prints on the base and on the patched kernel. NAME itself is a file of shell assignments:
#   cpus=2                     virtual CPUs
#   sockets=2                  of them, as many as CPUs if not given; the CPUs of one share their last cache
#   mem=4G                     memory, where nodes= is not given
#   nodes=("cpus=0,mem=2G" "id=2,cpus=1,mem=2G" "mem=1G")
#                              NUMA nodes in the order in which QEMU gets them; id counts up by itself;
#                              QEMU allows no gap, but a node may have no mem, no cpus, or neither
#   cpu_model=...              default qemu64,+pdpe1gb: "max" has ERMS, which TCG runs a byte at a time
#   prealloc=on                host memory is there before the guest starts (for clearing benchmarks)
#   config=bench               the kernel configuration that scripts/test boots it with
#   run=hugestate              the programs that run in it
#   min_tests=0                how many tests must have run, in guest programs and KUnit suites together
#   splat="..."                what the kernel must complain of (for testing that it does)
#   panic="..."                with what the kernel must panic; what is judged is the kernel that kexec starts then
#   kernel_inside=yes          the kernel is also a file in the guest, /kernel
#   base_fault="..."           why the base cannot pass: scripts/test boots the patched kernel alone
#   scraps=32                  blocks of 2M that have a page missing, so that a pool which takes all memory leaves
#                              these to user space; from 128M on, in node 0
#   slack=8                    how many pages base and patched kernel may differ by on a node with 100 or more,
#                              where nodes are full
#   full=yes                   scripts/test boots it with FULL=1 alone
#   qemu=(...)                 any other arguments of QEMU

mebibytes() {
	case $1 in
	*G) echo $((${1%G} * 1024)) ;;
	*M) echo "${1%M}" ;;
	*) die "memory \"$1\": give it in M or G" ;;
	esac
}

# The last machine type that has nodes without a backend for each.
one_backend_machine=pc-i440fx-5.0

# can_have_one_backend: says whether QEMU knows that machine.
can_have_one_backend() {
	[[ $(qemu-system-x86_64 -M help) == *$'\n'"$one_backend_machine "* ]]
}

# qemu_topology NAME: reads the scenario; sets topology, and spare, a part of the kernel command line.
# With one_backend=1 the memory of all nodes is one backend of QEMU, if it can do that. An emulated CPU
# remembers, in a cache line that all share, which backend it used last: two that work on a node each take
# it from each other at each TLB miss, as no real CPUs do.
qemu_topology() {
	local file=${SCENARIOS:-$top/tests/scenarios}/$1 node id=0 total=0 size cpu field
	[[ -n $1 && -f $file ]] || die "unknown scenario \"$1\"; there are: $(scenario_names | xargs)"
	cpus=1 sockets='' mem=1G nodes=() cpu_model=qemu64,+pdpe1gb prealloc=off config=bench run=hugestate
	min_tests=0 splat='' panic='' kernel_inside='' base_fault='' full='' scraps=0 slack=0 qemu=()
	# shellcheck source=/dev/null
	. "$file"
	# A socket a CPU, if not told otherwise: the kernel warns of one that spans nodes.
	: "${sockets:=$cpus}"
	topology=(-cpu "$cpu_model" -smp "cpus=$cpus,sockets=$sockets,cores=$((cpus / sockets)),threads=1")
	# QEMU refuses to fill memory beforehand that it may not reserve.
	local host_memory=reserve=off one=0
	[[ $prealloc == off ]] || host_memory=prealloc=on
	if ((${one_backend:-0})) && can_have_one_backend; then one=1; fi
	((${#nodes[@]})) || nodes=("cpus=0-$((cpus - 1)),mem=$mem")
	for node in "${nodes[@]}"; do
		size='' cpu=''
		for field in ${node//,/ }; do
			case $field in
			id=*) id=${field#id=} ;;
			mem=*) size=$(mebibytes "${field#mem=}") ;;
			cpus=*) cpu=,cpus=${field#cpus=} ;;
			*) die "$file: unknown node property \"$field\"" ;;
			esac
		done
		total=$((total + ${size:-0}))
		if ((one)); then
			topology+=(-numa "node,nodeid=$id$cpu,mem=${size:-0}M")
		else
			topology+=(${size:+-object "memory-backend-ram,id=ram$id,size=${size}M,$host_memory"}
				-numa "node,nodeid=$id$cpu${size:+,memdev=ram$id}")
		fi
		id=$((id + 1))
	done
	if ((one)); then
		topology+=(-M "$one_backend_machine,memory-backend=ram"
			-object "memory-backend-ram,id=ram,size=${total}M,$host_memory")
	fi
	spare=''
	for ((id = 0; id < scraps; id++)); do
		spare+="${spare:+,}4K\$$((128 + 2 * id))M"
	done
	spare="${spare:+transparent_hugepage=never memmap=$spare}"
	topology+=(-m "${total}M" ${qemu[@]+"${qemu[@]}"})
}

scenario_names() {
	find "${SCENARIOS:-$top/tests/scenarios}" -type f -regex '.*/[a-z0-9-]+' -printf '%f\n' | sort
}

# boot_lines NAME: the kernel command lines of the scenario, each a boot; an empty one if it has none.
boot_lines() {
	local file=${SCENARIOS:-$top/tests/scenarios}/$1.boot
	if [[ -f $file ]]; then sed -e 's/[[:space:]]*#.*//' -e '/^$/d' "$file"; else echo; fi
}

# expected NAME N: what must be so after the boot with the Nth command line.
expected() {
	sed -n -e "/^[0-9]/!p" -e "s/^$2: //p" "${SCENARIOS:-$top/tests/scenarios}/$1.expect"
}

# qemu_command ACCEL KERNEL INITRD CMDLINE: sets command. A panic ends QEMU (-no-reboot). no_timer_check:
# on a busy host the emulated timer is late, which the kernel takes for a broken one and panics.
qemu_command() {
	command=(qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot
		-accel "$1" "${topology[@]}" -kernel "$2" -initrd "$3"
		-append "console=ttyS0,115200 no_timer_check earlyprintk=serial,ttyS0,115200 panic=-1 $4")
}

# run_logged LOG LIMIT: runs the command with the console in LOG, which begins with the command
# itself and ends with how QEMU ended.
run_logged() {
	local rc=0
	mkdir -p "$(dirname "$1")"
	printf 'qemu: %s\n' "${command[*]@Q}" >"$1"
	timeout --foreground -k 5 "$2" "${command[@]}" -chardev "file,id=log,path=$1,append=on" -serial chardev:log \
		</dev/null >>"$1" 2>&1 || rc=$?
	if ((rc == 124 || rc == 137)); then
		printf '\nboot: time limit of %s s\n' "$2" >>"$1"
	else
		printf '\nboot: qemu ended with %s\n' "$rc" >>"$1"
	fi
}

# accelerator KERNEL INITRD: "kvm" only if a guest reaches its end with it, in no longer than an emulated one
# takes on a slow machine: where it hangs, it does so for good.
accelerator() {
	local answer=$OUT/accel probe=$OUT/accel.log
	[[ -f $answer ]] || lock "$answer"
	if [[ ! -f $answer ]]; then
		printf 'tcg,thread=multi\n' >"$answer.new"
		if [[ -w /dev/kvm ]]; then
			(
				topology=(-cpu qemu64 -m 512M)
				qemu_command kvm "$1" "$2" "-- true"
				run_logged "$probe" "${PROBE_LIMIT:-8}"
			)
			if grep -q '^guest: end' "$probe"; then echo kvm >"$answer.new"; fi
		fi
		mv "$answer.new" "$answer"
		say "boot: QEMU uses $(cat "$answer")"
	fi
	cat "$answer"
}
