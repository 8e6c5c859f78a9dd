# One verb per task; people and CI call the same verbs. `make` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m
STAMP := $(VENV)/.installed
PATHS := operator/headroom model_server/headroom_server deploy e2e tests
export PYTHONSAFEPATH := 1
# Many tests start processes: without kept bytecode, each compiles every module that it imports.
export PYTHONDONTWRITEBYTECODE :=
ROOT := $(filter 0,$(shell id -u))

.PHONY: help
help:            ## list the verbs
	@awk -F':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Develop

.PHONY: setup fmt lint types contracts check crd chart reference docs proto lock cluster demo demo-generation clean
setup: $(STAMP)  ## create the virtual environment from the lock file

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Headroom needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  [ "$$(id -u)" = 0 ] || { echo "python3-venv is missing: as root, apt-get install python3-venv" >&2; exit 1; }; \
	  echo "installing python3-venv"; apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; }
	@[ -x $(VENV)/bin/python ] || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@[ -x $(VENV)/bin/uv ] || { sed -n '/^uv==/,/^[a-z].*==/p' requirements.lock | sed '$$d' > $(VENV)/uv.lock; \
	  $(VENV)/bin/pip install -q --disable-pip-version-check --require-hashes -r $(VENV)/uv.lock; }
	@echo "installing what requirements.lock pins (5 GB with torch; seconds where it is cached)"
	@export VIRTUAL_ENV=$(CURDIR)/$(VENV) UV_SYSTEM_CERTS=1; \
	  $(VENV)/bin/uv pip sync -q --require-hashes requirements.lock && \
	  $(VENV)/bin/uv pip install -q --no-deps --editable .
	@touch $@

fmt: setup       ## format the code and apply the linter's safe fixes
	@$(RUN) ruff format $(PATHS)
	@$(RUN) ruff check --fix $(PATHS)

lint: setup      ## check format and lint, read only
	@$(RUN) ruff format --check --quiet $(PATHS)
	@$(RUN) ruff check --quiet $(PATHS)

types: setup     ## check types (mypy, strict)
	@nice $(RUN) mypy

contracts: setup ## check the import contracts in pyproject.toml
	@$(VENV)/bin/lint-imports --no-cache

check: setup     ## lint, types and contracts; .pre-commit-config.yaml calls the same
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint types contracts

crd: setup       ## regenerate the CRD and the chart's copy of it
	@$(RUN) headroom crd > deploy/base/crd.yaml
	@$(RUN) chart

chart: setup     ## regenerate what the chart shares with deploy/base, and its table of values
	@$(RUN) chart

docs: setup      ## build the documentation site into dist/site; every link must resolve
	@$(RUN) mkdocs build --strict --config-file .github/mkdocs.yml 2>&1

reference: setup ## regenerate the two REFERENCE.md pages
	@$(RUN) headroom reference > operator/REFERENCE.md
	@$(RUN) headroom_server reference > model_server/REFERENCE.md

proto: setup     ## regenerate the gRPC messages from their .proto
	@cd model_server/headroom_server/open_inference_grpc && UV_SYSTEM_CERTS=1 $(CURDIR)/$(VENV)/bin/uv tool run \
	  --from grpcio-tools==1.76.0 python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. messages.proto && \
	  sed -i 's/_descriptor_pool.Default()/_descriptor_pool.DescriptorPool()/' messages_pb2.py

lock: setup      ## update every lock file from pyproject.toml
	@export UV_SYSTEM_CERTS=1; uv="$(VENV)/bin/uv pip compile pyproject.toml --quiet --generate-hashes --no-emit-index-url --no-header"; \
	  $$uv --all-extras --group dev --output-file requirements.lock && \
	  $$uv --extra operator --constraints requirements.lock --output-file deploy/operator.lock && \
	  $$uv --extra server --extra cache --extra tracing --constraints requirements.lock --output-file deploy/model-server.lock && \
	  $$uv --extra server --extra cache --extra tracing --extra torch --extra generation --constraints requirements.lock --output-file deploy/model-server-torch.lock && \
	  $(VENV)/bin/uv pip compile deploy/downloader/requirements.in --python-version 3.11 --quiet --generate-hashes --no-emit-index-url --no-header \
	    --output-file deploy/downloader/requirements.lock && \
	  $(VENV)/bin/uv pip compile e2e/load/requirements.in --quiet --generate-hashes --no-emit-index-url --no-header \
	    --constraints requirements.lock --output-file e2e/load/requirements.lock

cluster: setup   ## start a local cluster where there is no Docker; see `.venv/bin/python -m cluster --help`
	@$(RUN) cluster up

demo: setup      ## the whole path, live, on this machine or the cluster of KUBECONFIG (KEEP=1 keeps it)
	@$(RUN) demo $(if $(KEEP),--keep)

demo-generation: setup ## the same for generated text: TTFT, TPOT, tokens per second, KV use, what binds
	@$(RUN) demo_generation $(if $(KEEP),--keep)

clean:           ## remove the virtual environment and all caches of the checkout
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

##@ Test

.PHONY: test test-one unit kernel scenarios e2e-full fuzz mutation
# Types are checked while the tests leave time for it.
test: setup      ## everything that must pass; CI runs this
	@$(MAKE) --no-print-directory --jobs 2 --output-sync kernel lint contracts docs
	@$(MAKE) --no-print-directory --jobs 2 types unit
	@$(MAKE) --no-print-directory scenarios
	@$(RUN) second_runs

test-one: setup  ## one file or test, with output: T=tests/scaling/limits/test_limits.py::test_name
	@$(RUN) pytest $(or $(T),$(error T=tests/FILE.py or T=tests/FILE.py::TEST is missing)) -x --capture no

unit: setup      ## unit and property tests; no cluster, no GPU
	@$(RUN) pytest tests --numprocesses auto --dist worksteal --second-runs unit

# Otherwise each test worker would compile it.
kernel: setup    ## compile the simulator's kernel
	@$(RUN) headroom simulate step --autoscaler keda --jobs 1 >/dev/null
	@$(RUN) generation_study compile

scenarios: setup ## scenarios on a real API server, and on a real node if run as root
	@$(RUN) cluster setup --browser $(if $(KUBECONFIG)$(ROOT),,--control-plane-only)
	@$(RUN) pytest e2e/scenarios --numprocesses 3 --dist loadfile --no-loadscope-reorder --second-runs scenarios

e2e-full: setup  ## the slow tier: pods of the torch image, third-party servers, vLLM (installs 6 GB once)
	@$(RUN) pytest e2e/slow

fuzz: setup      ## each fuzzer of the model server for FUZZ_S seconds (600)
	@FUZZ_S=$(or $(FUZZ_S),600) $(RUN) pytest tests/server/test_fuzz*.py --numprocesses auto --timeout 0

mutation: setup  ## the share of seeded bugs in decisions and guards that the tests catch
	@$(RUN) mutation $(ARGS)

##@ Measure

.PHONY: bench bench-gpu bench-gateway bench-server bench-decision bench-generation reliability
bench: setup     ## the figures of README and BENCHMARKS, compared side by side
	@$(RUN) bench

bench-gpu: setup ## real models on the GPU compared with a bare loop; tiny ones without a GPU; VLLM=PYTHON adds vLLM behind our front
	@$(RUN) bench gpu
	$(if $(VLLM),@$(RUN) bench vllm-front --gpu --vllm $(VLLM))

bench-gateway: setup ## routing policies, Envoy's cost, one tenant's flood, scale from zero, changes under load (root; 35 min)
	@$(RUN) bench hours gateway tenants zero routing

bench-server: setup ## the model server compared with other servers, 35 min (ARGS=--quick: 5; ARGS=--soak); resumes
	@$(RUN) serverbench $(ARGS)

bench-decision: setup ## the decision compared with every peer in every cell (ARGS=--quick: up to 10 min; ARGS=family: random cells); resumes
	@$(RUN) decision_study $(ARGS)

bench-generation: setup ## autoscalers of generating services on the plant with tokens (ARGS=--quick; ARGS=stages, speed, causes, rules); resumes
	@$(RUN) generation_study $(ARGS)

reliability: setup ## faults: telemetry, crashes, outages, leaders, scale-1000, soak, attacks, generation (ARGS=crashes: one part); resumes
	@$(RUN) reliability $(ARGS)

##@ Release

.PHONY: release
release: setup   ## into dist/: chart, SBOMs, wheel, krew plugin, checksums (SIGN_KEY=, SIGN_KEYRING=: signatures)
	@$(RUN) release
