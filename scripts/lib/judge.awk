# SPDX-License-Identifier: GPL-2.0
# The rules of scripts/judge. Kernel lines (with a time) and program lines are two
# streams, since they mix on one console: each has its own stack of KTAP blocks.

BEGIN {
	while ((getline line <allow) > 0)
		if (line !~ /^(#|$)/) {
			sub(/[ \t]+# .*/, "", line)
			allowed[++nallowed] = line
		}
	splat = "^(WARNING:|BUG:|kernel BUG at|Oops|general protection fault|KASAN:|UBSAN:|KCSAN:|" \
		"INFO: task .* blocked for more than|INFO: trying to register non-static key|" \
		"rcu: INFO: .*(stall|self-detected)|INFO: rcu.*stall|watchdog: BUG|Unable to handle kernel|" \
		"list_(add|del) corruption|refcount_t:|ODEBUG:|DEBUG_LOCKS_WARN_ON|stack segment|double fault|" \
		"divide error:|invalid opcode:|Kernel stack |[^ ]+: page allocation failure|Call Trace:)"
}

function fault(text) { faults[++nfaults] = text }

# KTAP: a block is what stands between "KTAP version" and its last result, at one indentation.
function open_block(s, d) {
	close_blocks(s, d)
	depth[s]++
	indent[s, depth[s]] = d
	plan[s, depth[s]] = -1
	done[s, depth[s]] = 0
}

function close_blocks(s, d,    i) {
	while (depth[s] && indent[s, depth[s]] >= d) {
		i = depth[s]--
		where = s == "kernel" ? "kernel" : program
		# KUnit gives no plan for the parameters of a test.
		if (plan[s, i] < 0 && (indent[s, i] == 0 || !done[s, i]))
			fault("KTAP incomplete: " where ": no plan, " done[s, i] " results")
		else if (plan[s, i] >= 0 && done[s, i] != plan[s, i])
			fault("KTAP incomplete: " where ": " done[s, i] " of " plan[s, i] " results")
	}
}

function result(s, d, text, good,    i) {
	close_blocks(s, d + 1)
	i = depth[s]
	if (!i || indent[s, i] != d)
		return
	done[s, i]++
	if (good || text ~ /# *(SKIP|TODO|XFAIL)/)
		good = 1
	else
		fault("not ok: " (s == "kernel" ? "kernel" : program) ": " text)
	if (text ~ /# *SKIP/)
		skips++
	tests++
}

{
	stream = "user"
	text = $0
	if (sub(/^\[ *[0-9]+\.[0-9]+\](\[ *[CT][0-9]+\])? /, "", text))
		stream = "kernel"
	match(text, /^ */)
	d = RLENGTH
	body = substr(text, d + 1)
}

# The panic that is wanted, and what the kernel says of it until the next one starts.
crash != "" && !crashed && body ~ /^Kernel panic - not syncing/ && index(body, crash) { crashed = dying = 1 }
dying && body ~ /^Linux version / { dying = running = 0 }
dying && !/^boot: / { next }

index(text, end) == 1 { ended = 1 }
body ~ /^Kernel panic - not syncing/ && !ended { panic = body }
/^boot: time limit/ { limit = $0 }

/^guest: start / { program = $3; programs++; running = 1 }
/^guest: done / {
	running = 0
	close_blocks("user", 0)
	split($4, v, "=")
	if (v[1] == "signal")
		fault("died: " $3 ": signal " v[2])
	else if (v[2] != 0)
		fault("failed: " $3 ": status " v[2])
}

body ~ /^K?TAP version 1/ { open_block(stream, d); next }
body ~ /^1\.\.[0-9]+/ && depth[stream] && indent[stream, depth[stream]] == d {
	plan[stream, depth[stream]] = substr(body, 4) + 0
	next
}
body ~ /^ok [0-9]+/ { result(stream, d, body, 1); next }
body ~ /^not ok [0-9]+/ { result(stream, d, body, 0); next }
/^Bail out!/ { fault("not ok: " program ": " $0) }

body ~ splat {
	# The trace of a complaint that has been counted is not another one.
	if (body ~ /^Call Trace:/ && last_splat && NR - last_splat < 60)
		next
	last_splat = NR
	if (want != "" && index(body, want)) {
		wanted = 1
		next
	}
	for (i = 1; i <= nallowed; i++)
		if (body ~ allowed[i])
			next
	if (++splats <= 5)
		fault("splat: " body)
}

/^state:/ {
	states[$0] = 1
	ordered[++nstates] = $0
}

# "state: total 2048kB nr>=100" is there as "state: total 2048kB nr=123 ..." too.
function has_state(line,    at, s) {
	at = index(line, ">=")
	if (!at)
		return line in states
	for (s in states)
		if (index(s, substr(line, 1, at - 1) "=") == 1 && substr(s, at + 1) + 0 >= substr(line, at + 2) + 0)
			return 1
	return 0
}

# Two lines are alike if they are the same, or if numbers from 100 on (of pages, not of nodes) are at most slack apart.
function alike(a, b,    x, y, i, n) {
	if (a == b)
		return 1
	n = split(a, x, /[^0-9]+/)
	split(b, y, /[^0-9]+/)
	gsub(/[0-9]+/, "#", a)
	gsub(/[0-9]+/, "#", b)
	for (i = 1; i <= n; i++)
		if (x[i] != y[i] && (x[i] < 100 || y[i] < 100 || x[i] - y[i] > slack || y[i] - x[i] > slack))
			return 0
	return a == b
}

# The first line in which the other boot's state differs.
function compare_states(log_file,    line, n) {
	while ((getline line <log_file) > 0) {
		sub(/\r$/, "", line)
		if (line !~ /^state:/)
			continue
		if (!alike(ordered[++n], line)) {
			fault("state: differs: " (n > nstates ? "nothing" : ordered[n]) ", not " line)
			return
		}
	}
	if (n < nstates)
		fault("state: differs: " ordered[n + 1] ", not nothing")
	else if (!n)
		fault("state: none to compare")
}

END {
	if (panic != "")
		fault("panic: " panic)
	else if (!ended && limit != "")
		fault("hang: " substr(limit, 7) (running ? ", in " program : ""))
	else if (!ended)
		fault("truncated: the log ends before \"" end "\"" (running ? ", in " program : ""))
	if (crash != "" && !crashed)
		fault("panic: missing: " crash)
	close_blocks("user", 0)
	close_blocks("kernel", 0)
	if (want != "" && !wanted)
		fault("splat: missing: " want)
	if (tests < min)
		fault("KTAP incomplete: " tests + 0 " tests, at least " min " expected")
	while (state != "" && (getline line <state) > 0)
		if (line ~ /^! / && (substr(line, 3) in states))
			fault("state: must not be: " substr(line, 3))
		else if (line ~ /^state:/ && !has_state(line))
			fault("state: missing: " line)
	if (same != "")
		compare_states(same)
	for (i = 1; i <= nfaults; i++)
		print faults[i]
	if (!nfaults)
		printf "ok: %d programs, %d tests, %d skipped\n", programs, tests, skips
	exit nfaults > 0
}
