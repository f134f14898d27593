# SPDX-License-Identifier: GPL-2.0
# Makes bench.tsv of lines "CASE KIND VALUE UNIT", kind being base, patched or limit, one line a boot.
# A case without values has only "CASE"; what cannot be computed is "-".
# Spread is (max - min) / median, in per cent.

function median(key,	v, n, i, j, t) {
	n = split(values[key], v, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
			t = v[j]
			v[j] = v[j - 1]
			v[j - 1] = t
		}
	if (!n)
		return "-"
	low = v[1] + 0
	high = v[n] + 0
	count = n
	return n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
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
		limit = median(name SUBSEP "limit")
		base = median(name SUBSEP "base")
		base_spread = spread(base)
		runs = base == "-" ? 0 : count
		patched = median(name SUBSEP "patched")
		if (base == "-" && patched != "-")
			runs = count
		patched_spread = spread(patched)
		print name, name in unit ? unit[name] : "ms", runs ? runs : "-", number(base), number(patched),
			ratio(base, patched), number(limit), ratio(limit, patched), base_spread, patched_spread
	}
}
