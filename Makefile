# Every task of the project, one command each. `make test` is what continuous integration runs.
CARGO ?= cargo
SEED ?=
NAME ?=

.DEFAULT_GOAL := help
.PHONY: help demo build test check sim soak bench fuzz deny

help: ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

build: ## build the program: target/release/hemiola
	$(CARGO) build --release -p hemiola-cli

demo: build ## train a recommender on generated ratings and ask it for recommendations
	./target/release/hemiola demo

check: ## formatting, lints, documentation
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

test: check ## everything that continuous integration runs
	$(CARGO) test --workspace --quiet
	$(CARGO) run --quiet -p hemiola --example hello -- threads
	$(CARGO) run --quiet -p hemiola --example hello -- tcp
	$(CARGO) run --quiet -p hemiola --example hello -- sim
	$(CARGO) run --quiet -p hemiola --example factors -- threads
	$(CARGO) run --quiet -p hemiola --example factors -- tcp
	$(CARGO) run --quiet -p hemiola --example factors -- sim
	$(CARGO) run --quiet -p hemiola --example splash -- threads
	$(CARGO) run --quiet -p hemiola --example splash -- tcp
	$(CARGO) run --quiet -p hemiola --example splash -- sim
	$(CARGO) run --quiet -p hemiola --example momentum -- threads
	$(CARGO) run --quiet -p hemiola --example momentum -- tcp
	$(CARGO) run --quiet -p hemiola --example momentum -- sim
	$(CARGO) run --quiet -p hemiola --example subgradient -- threads sequential
	$(CARGO) run --quiet -p hemiola --example subgradient -- tcp 2
	$(CARGO) run --quiet -p hemiola --example subgradient -- sim auto
	$(CARGO) run --quiet -p hemiola --example own_filter -- tcp
	$(CARGO) run --quiet -p hemiola --example own_filter -- sim

sim: ## 2,000 random clusters under the consistency oracle (SEED=n for one of them)
	$(if $(SEED),HEMIOLA_SEED=$(SEED),HEMIOLA_SEEDS=2000) $(CARGO) test --release -p hemiola --test oracle --test factors -- --nocapture

soak: ## 50 jobs killed at random moments that go on from their checkpoints (SEED=n for others)
	$(if $(SEED),HEMIOLA_SEED=$(SEED)) HEMIOLA_MOMENTS=50 $(CARGO) test -p hemiola --test checkpoints -- --nocapture killed
	$(if $(SEED),HEMIOLA_SEED=$(SEED)) HEMIOLA_MOMENTS=50 $(CARGO) test -p hemiola-cli --test checkpoints -- --nocapture killed

bench: build ## speed beside other programs, and what parts cost (NAME=mf|lda|mlr|l1lr|l2mlr|sc|processes|wire|tasks|splash|budget|overhead|checkpoints for one)
	./bench/run $(NAME)

fuzz: ## any bytes into a decoder for a minute (NAME=frame|ratings|corpus|labelled|model; needs a nightly toolchain)
	$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz@0.13.2
	$(CARGO) +nightly fuzz run $(or $(NAME),frame) -- -max_total_time=60

deny: ## licences, duplicate and banned dependencies
	$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-deny@0.20.2
	$(CARGO) deny check bans licenses sources
