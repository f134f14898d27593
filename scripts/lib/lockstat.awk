# SPDX-License-Identifier: GPL-2.0
# The tables of scripts/lockstat from a boot's log: "lockstat: WHAT PAGES SECONDS" comes before a /proc/lock_stat.
# -v title=, cpus= (virtual), host= (those that there are), setup_ms= (what the pages of 1G took).

{ sub(/\r$/, "") }

function report(    i, name, best, done) {
	if (what == "boot") {
		work = setup_ms * 1000 / pages * (cpus < host ? cpus : host)
		printf "%s, 1G at boot: about %.0f us of a CPU a page\n", title, work
	} else if (what == "1") {
		work = (now - start) * 1e6 / pages
		printf "%s, 2M by one CPU: %.0f us a page\n", title, work
	} else {
		printf "%s, 2M by all CPUs\n", title
	}
	printf "  %-24s %10s %12s %12s %8s\n", "lock", "takes/page", "held us/page", "wait us/page", "CPUs"
	for (i = 0; i < 5; i++) {
		best = ""
		for (name in held)
			if (!(name in done) && (best == "" || held[name] + wait[name] > held[best] + wait[best]))
				best = name
		if (best == "" || held[best] <= 0)
			break
		done[best] = 1
		printf "  %-24s %10.4f %12.3f %12.3f %8.0f\n", best, taken[best] / pages, held[best] / pages,
			wait[best] / pages, work * pages / held[best]
	}
	split("", held)
	split("", wait)
	split("", taken)
}

/^lockstat: / || /^guest: done/ {
	if (what != "" && what != "start")
		report()
	what = $1 == "lockstat:" ? $2 : ""
	pages = $3
	start = now
	now = $NF
}

# "NAME: con-bounces contentions waittime-{min,max,total,avg} acq-bounces acquisitions holdtime-{min,max,total,avg}".
# What else a boot does takes the other locks too.
/: +[0-9]+ +[0-9]+ +[0-9.]+ / && NF >= 13 && $NF ~ /\./ {
	name = $0
	sub(/: +[0-9]+ +[0-9]+ +[0-9.]+ .*/, "", name)
	gsub(/^ +/, "", name)
	if (name !~ (what == "boot" ? "^hugetlb_lock$" : "^(hugetlb_lock|&ps->lock|&zone->lock)$"))
		next
	wait[name] += $(NF - 7)
	taken[name] += $(NF - 4)
	held[name] += $(NF - 1)
}
