# SPDX-License-Identifier: GPL-2.0
# With median.awk: one value and its unit out of a boot's log, or nothing. -v spec= says which:
#   initcall NAME     duration of that initcall, as initcall_debug prints it
#   between A | B     from the last kernel line that has A to the first after it that has B
#   guest NAME        median of the lines "bench: NAME VALUE UNIT" of a program in the guest
#   kernel NAME       the same of such lines that the kernel printed

function kernel_time() {
	return match($0, /\[ *[0-9]+\.[0-9]+\]/) ? substr($0, RSTART + 1, RLENGTH - 2) + 0 : -1
}

BEGIN {
	unit = "ms"
	kind = spec
	sub(/ .*/, "", kind)
	rest = substr(spec, length(kind) + 2)
	if (kind == "between") {
		split(rest, edge, / \| /)
		start = end = -1
	}
}

{ sub(/\r$/, "") }

# initcall hugetlb_init+0x0/0x3a0 returned 0 after 523119 usecs
kind == "initcall" && index($0, "initcall " rest "+") && / returned / && / usecs$/ {
	value[n = 1] = $(NF - 1) / 1000
}

kind == "between" && end < 0 && index($0, edge[1]) { start = kernel_time() }
kind == "between" && end < 0 && start >= 0 && index($0, edge[2]) {
	end = kernel_time()
	value[n = 1] = (end - start) * 1000
}

{ stream = sub(/^\[ *[0-9]+\.[0-9]+\] /, "") ? "kernel" : "guest" }
kind == stream && $1 == "bench:" && $2 == rest {
	value[++n] = $3 + 0
	unit = $4
}

END {
	if (n)
		printf "%.3f %s\n", median(value, n), unit
}
