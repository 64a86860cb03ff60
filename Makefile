# Two commands do all the set-up: `make run` (the main job, ending in a report) and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
RESULTS ?= attnproof-results
REPORT ?= attnproof-report

HF_GDN := transformers.models.qwen3_next.modeling_qwen3_next
HF_KDA := transformers.models.kimi_linear.modeling_kimi_linear

.PHONY: run test lint coqchk bench clean
.DELETE_ON_ERROR:

$(READY): pyproject.toml constraints.txt
	@echo "== installing attnproof and its peers into $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[peers,dev]'
	@touch $@

# Exit code 1 of the last certification is the expected answer: its kernel is wrong on purpose.
run: $(READY)
	@echo "== prove: derivations, step by step"
	@$(BIN)/attnproof prove --results $(RESULTS)
	@echo "== refute: counterexamples, re-checked by independent code"
	@$(BIN)/attnproof refute --results $(RESULTS)
	@echo "== certify: kernels of this project and of others"
	@$(BIN)/attnproof certify kernels.kda.chunked:chunked_kda --mechanism kda --convention ours --results $(RESULTS)
	@$(BIN)/attnproof certify $(HF_GDN):torch_chunk_gated_delta_rule.__wrapped__ --mechanism gdn --convention transformers --results $(RESULTS)
	@$(BIN)/attnproof certify $(HF_KDA):chunk_kimi_delta_attention.__wrapped__ --mechanism kda --convention transformers --results $(RESULTS)
	@$(BIN)/attnproof certify fla.ops.kda.naive:naive_recurrent_kda --mechanism kda --convention fla --results $(RESULTS)
	@echo "== certify a kernel that is wrong on purpose, to show what a refutation looks like"
	@$(BIN)/attnproof certify examples/wrong_order_kda.py:wrong_order_kda --mechanism kda --convention ours --results $(RESULTS) || test $$? -eq 1
	@$(BIN)/attnproof recheck $(RESULTS)
	@$(BIN)/attnproof report --results $(RESULTS) --out $(REPORT)

test: $(READY) lint
	@echo "== tests"
	$(BIN)/python -m pytest -n 2

lint: $(READY)
	@echo "== lint: style, types, import directions"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Coq's stand-alone checker on all compiled proofs.
coqchk: $(READY)
	@echo "== coqchk: kernel-checked proofs, checked once more"
	$(BIN)/attnproof prove --engine coqchk

bench: $(READY)
	@for bench in tests/bench/bench_*.py; do echo "== $$bench"; $(BIN)/python $$bench || exit 1; done

clean:
	rm -rf $(VENV) $(RESULTS) $(REPORT) build *.egg-info
