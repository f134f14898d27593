# SPDX-License-Identifier: GPL-2.0
# The front door: every target is a script in scripts/. "make help" lists them.

BASE ?= 7.3
OUT ?= $(CURDIR)/out
export BASE OUT
# Passed on where given: make bench CASES="boot-2m" RUNS=5, make apply KDIR=~/linux
export KDIR CASES RUNS FORCE FULL JOBS STABLE_GIT

SCENARIO ?= smoke

.DEFAULT_GOAL := help
.PHONY: help setup fetch tree refresh apply build smoke shell check test bench clean

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
	@echo "variables: BASE=$(BASE) OUT=$(OUT) KDIR= CASES= RUNS= SCENARIO= FORCE=1 JOBS="

setup: ## install the Debian packages that are missing
	@scripts/setup

fetch: setup ## get the base's source (from KDIR= if given; else Debian's package, else the stable tree)
	@scripts/fetch

tree: fetch ## make a git tree of the patched base, one commit a patch; prints its path
	@scripts/tree

refresh: ## write patches/ and series/ back from that tree
	@scripts/refresh

apply: ## apply the stack to your own tree: KDIR=/path/to/linux
	@scripts/apply

build: tree ## build base and patched kernel
	@scripts/build --tree base --config bench
	@scripts/build --tree patched --config bench

smoke: tree ## the quickest real boot of the patched kernel
	@scripts/smoke

shell: tree ## a shell in the patched kernel: SCENARIO=smoke
	@kernel=$$(scripts/build --tree patched --config bench) && \
		scripts/boot --shell --kernel "$$kernel" --scenario "$(SCENARIO)"

check: tree ## static checks: series, zero-fuzz apply, checkpatch, sparse, kernel-doc, shellcheck, spelling
	@scripts/check

test: ## everything that CI checks; last line "N passed, N failed, N skipped"; FULL=1: debug kernels too
	@scripts/test

bench: ## measure base and patched kernel in turn: CASES="..." RUNS=5
	@scripts/bench

clean: ## remove what was built, keep the source
	@rm -rf "$(OUT)/$(BASE)/build" "$(OUT)/guest"
