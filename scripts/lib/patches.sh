# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0
# Sourced by tree, refresh, apply and check: patches as commits and as files.

# What the branch was last made of or written to: its commit, and the series' hash then.
synced=$basedir/synced

is_synced_commit() { [[ "$(git -C "$linux" rev-parse stack)" == "$(sed -n 's/^commit=//p' "$synced" 2>/dev/null)" ]]; }
is_synced_series() { [[ "$(series_hash)" == "$(sed -n 's/^series=//p' "$synced" 2>/dev/null)" ]]; }
mark_synced() {
	printf 'commit=%s\nseries=%s\n' "$(git -C "$linux" rev-parse stack)" "$(series_hash)" >"$synced"
}

# Git that neither follows the user's settings nor asks for his name: the same commits everywhere.
plain_git() { GIT_CONFIG_GLOBAL=/dev/null git "${git_as_us[@]}" "$@"; }

# busy TREE: what git is in the middle of there, or nothing.
busy() {
	local dir
	dir=$(git -C "$1" rev-parse --absolute-git-dir)
	if [[ -d $dir/rebase-apply ]]; then
		echo "git am or git rebase"
	elif [[ -d $dir/rebase-merge ]]; then
		echo "git rebase"
	elif [[ -f $dir/MERGE_HEAD ]]; then
		echo "git merge"
	elif [[ -f $dir/CHERRY_PICK_HEAD || -f $dir/REVERT_HEAD ]]; then
		echo "git cherry-pick or git revert"
	fi
}

# slug SUBJECT: a patch's file name.
slug() {
	printf '%s' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9]+/-/g; s/^-//; s/-$//' | sed 's/$/.patch/'
}

# subject FILE: a patch file's subject, unfolded, without [PATCH].
subject() { git mailinfo /dev/null /dev/null <"$1" | sed -n 's/^Subject: //p'; }

# notes_of FILE: what stands between --- and the diffstat.
notes_of() {
	awk '/^---$/ { on = 1; next }
		on && (/^diff --git / || / \| +[0-9]+ [+-]*$/ || / \| +Bin / || / [0-9]+ files? changed/) { exit }
		on { print }' "$1" | sed -e '/./,$!d' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}

# touched FILE...: the files that patches change, add or delete.
touched() { sed -nE 's!^(---|\+\+\+) [ab]/([^\t]*).*!\2!p' "$@" | sort -u; }

# reject DIR FILE: apply FILE to the files in DIR with no fuzz; what does not fit is shown.
reject() {
	local out rej=$1/.reject
	out=$(patch -d "$1" -p1 -F0 -N --no-backup-if-mismatch -r "$rej" <"$2" 2>&1) && return
	{
		printf '%s\n' "$out" | grep -E '^(patching file|Hunk .* FAILED|can.t find|The next patch)|already exists' |
			grep -B1 -vE '^patching file' | sed 's/^/  /' || true
		if [[ -s $rej ]]; then
			echo "  the reject:"
			sed 's/^/  /' "$rej"
		fi
	} >&2
	return 1
}

# first_reject DIR: apply the whole stack to a scratch copy of the files of DIR that it touches,
# DIR itself being only read; says which patch fails, in which file, and shows the reject.
first_reject() {
	local name scratch
	scratch=$(mktemp -d)
	series_patches | sed "s!^!$PATCHES/!" | tr '\n' '\0' | xargs -0 sed -nE 's!^--- a/([^\t]*).*!\1!p' | sort -u |
		while IFS= read -r name; do
			if [[ -f $1/$name ]]; then (cd "$1" && cp --parents "$name" "$scratch"); fi
		done
	while IFS= read -r name; do
		if ! reject "$scratch" "$PATCHES/$name"; then
			rm -rf "$scratch"
			say "$(basename "$0"): $name does not apply to $1"
			return 1
		fi
	done < <(series_patches)
	rm -rf "$scratch"
}

# The files that the series names must be there.
need_patches() {
	local name
	[[ -n $(series_patches) ]] || die "series/$BASE names no patch"
	while IFS= read -r name; do
		[[ -f $PATCHES/$name ]] || die "series/$BASE names $name, which is not in patches/$BASE"
	done < <(series_patches)
}
