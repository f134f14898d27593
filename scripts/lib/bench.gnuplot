# SPDX-License-Identifier: GPL-2.0
# bench.png of the times in bench.tsv: base, patched and limit of each case side by side.
set terminal pngcairo size 1100,480 noenhanced
set output dir.'/bench.png'
set datafile separator "\t"
set datafile missing "-"
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.85 border -1
set ylabel 'ms, median'
set yrange [0:*]
set grid ytics
set key top right
set xtics rotate by -15
times = "< awk -F'\t' 'NR == 1 || $2 == \"ms\"' ".dir."/bench.tsv"
plot times using 4:xtic(1) title 'base' lc rgb '#999999', \
	times using 5 title 'patched' lc rgb '#2a7fbf', \
	times using 7 title 'limit of this machine' lc rgb '#e0b050'
