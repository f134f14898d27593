# SPDX-License-Identifier: GPL-2.0
# With median.awk: makes bench.tsv of lines "CASE KIND VALUE UNIT", kind being base, patched or limit, one line a boot.
# A case without values has only "CASE"; what cannot be computed is "-".
# Spread is (max - min) / median, in per cent.

# The median of the values of a case; also sets low, high and count.
function median_of(key,	v, n, middle) {
	n = split(values[key], v, " ")
	if (!n)
		return "-"
	middle = median(v, n)
	low = v[1] + 0
	high = v[n] + 0
	count = n
	return middle
}

function number(v) { return v == "-" ? "-" : sprintf(v < 10 && v > -10 ? "%.2f" : "%.1f", v) }
function ratio(a, b) { return a == "-" || b == "-" || b == 0 ? "-" : sprintf("%.2f", a / b) }
function spread(m) { return m == "-" || m == 0 || count < 2 ? "-" : sprintf("%.1f", 100 * (high - low) / m) }

BEGIN { OFS = "\t" }

!($1 in seen) {
	seen[$1] = 1
	cases[++nr] = $1
}

NF == 4 {
	values[$1, $2] = values[$1, $2] " " $3
	unit[$1] = $4
}

END {
	print "case", "unit", "runs", "base", "patched", "ratio", "limit", "of_limit", "base_spread", "patched_spread"
	for (i = 1; i <= nr; i++) {
		name = cases[i]
		limit = median_of(name SUBSEP "limit")
		base = median_of(name SUBSEP "base")
		base_spread = spread(base)
		runs = base == "-" ? 0 : count
		patched = median_of(name SUBSEP "patched")
		if (base == "-" && patched != "-")
			runs = count
		patched_spread = spread(patched)
		print name, name in unit ? unit[name] : "ms", runs ? runs : "-", number(base), number(patched),
			ratio(base, patched), number(limit), ratio(limit, patched), base_spread, patched_spread
	}
}
