# SPDX-License-Identifier: GPL-2.0
# For other programs (-f lib/median.awk -f ...): the median of v[1] to v[n], which are sorted by that.

function median(v, n,	i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
			t = v[j]
			v[j] = v[j - 1]
			v[j - 1] = t
		}
	return n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
}
