# One verb per task; people and CI call the same verbs. `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m
STAMP := $(VENV)/.installed
PATHS := operator/headroom model_server/headroom_server e2e tests
export PYTHONSAFEPATH := 1
# Many tests start processes: without its bytecode kept, each compiles all that it imports.
export PYTHONDONTWRITEBYTECODE :=
ROOT := $(filter 0,$(shell id -u))

# Hundreds of tests live by the clock, and the machine is others' too: what failed among the others is run
# once more by itself, after its failure was printed. A defect fails twice; what hypothesis found, it tries again.
once_more = || { [ $$? = 1 ] && echo "make: once more, by themselves:" && $(RUN) pytest $(1) --last-failed --last-failed-no-failures none; }

.PHONY: help setup fmt lint types contracts check unit kernel fuzz scenarios test e2e-full demo bench bench-server bench-decision mutation crd reference proto lock cluster clean

help:            ## list the verbs
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## virtual environment with everything, from the lock file

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

fmt: setup       ## format and mend what can be mended by itself
	@$(RUN) ruff format $(PATHS)
	@$(RUN) ruff check --fix $(PATHS)

lint: setup      ## format and lint, read only
	@$(RUN) ruff format --check --quiet $(PATHS)
	@$(RUN) ruff check --quiet $(PATHS)

types: setup     ## strict types
	@nice $(RUN) mypy

contracts: setup ## the import contracts: the tree is the architecture
	@$(VENV)/bin/lint-imports --no-cache

check: setup     ## lint, types and contracts at once
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint types contracts

unit: setup      ## unit and property tests: no cluster, no GPU
	@$(RUN) pytest tests --numprocesses auto --dist worksteal $(call once_more,tests)

# Else each worker of the tests would compile it.
kernel: setup    ## compile the simulator's plant
	@$(RUN) headroom simulate step --autoscaler keda --jobs 1 >/dev/null

fuzz: setup      ## every fuzzer of the model server for FUZZ_S seconds each (600)
	@FUZZ_S=$(or $(FUZZ_S),600) $(RUN) pytest tests/server/test_fuzzing.py --numprocesses auto --timeout 0

scenarios: setup ## the scenarios on a real API server, and on a real node where root allows
	@$(RUN) cluster setup --browser $(if $(KUBECONFIG)$(ROOT),,--control-plane-only)
	@$(RUN) pytest e2e/scenarios --numprocesses 3 --dist loadfile --no-loadscope-reorder $(call once_more,e2e/scenarios)

# The types are checked in what time the tests leave over that wait.
test: setup      ## everything that must hold: what CI runs
	@$(MAKE) --no-print-directory --jobs 2 --output-sync kernel lint contracts
	@$(MAKE) --no-print-directory --jobs 2 types unit
	@$(MAKE) --no-print-directory scenarios

e2e-full: setup  ## the slow tier: a torch model served from a pod of the full image
	@$(RUN) pytest e2e/slow

demo: setup      ## the whole way, live, on this machine or the cluster of KUBECONFIG (KEEP=1 leaves it up)
	@$(RUN) demo $(if $(KEEP),--keep)

bench: setup     ## the figures, measured side by side
	@$(RUN) bench

.PHONY: bench-gpu
bench-gpu: setup ## real models on the GPU beside a bare loop; tiny ones on the CPU where there is none
	@$(RUN) bench gpu

.PHONY: bench-gateway
bench-gateway: setup ## least in flight beside pinned connections and random choice, what Envoy costs, one tenant's flood, from no replica, and requests while everything changes (as root); 35 min
	@$(RUN) bench hours gateway tenants zero routing

bench-server: setup ## the model server beside other servers, 35 min (ARGS=--quick: 5; ARGS=--soak: the soak); resumes
	@$(RUN) serverbench $(ARGS)

bench-decision: setup ## the decision against every peer in every cell (ARGS=--quick: 10 min); resumes
	@$(RUN) decision_study $(ARGS)

.PHONY: reliability
reliability: setup ## the promises under faults: telemetry, crashes, outages, leaders, scale-1000, soak (ARGS=crashes: one part); resumes
	@$(RUN) reliability $(ARGS)

mutation: setup  ## plant seeded bugs in the decision and the guards; the share that the tests catch
	@$(RUN) mutation $(ARGS)

crd: setup       ## write the CRD anew from the typed values, and the chart's copy
	@$(RUN) headroom crd > deploy/base/crd.yaml
	@$(RUN) chart

.PHONY: chart
chart: setup     ## write what the chart shares with deploy/base, and its table of values
	@$(RUN) chart

.PHONY: release
release: setup   ## into dist/: the chart's package, each image's bill of materials, sums (SIGN_KEY=, SIGN_KEYRING=: signed)
	@$(RUN) release

reference: setup ## write the pages REFERENCE.md anew from the code
	@$(RUN) headroom reference > operator/REFERENCE.md
	@$(RUN) headroom_server reference > model_server/REFERENCE.md

proto: setup     ## write the gRPC messages anew from their .proto
	@cd model_server/headroom_server/open_inference_grpc && UV_SYSTEM_CERTS=1 $(CURDIR)/$(VENV)/bin/uv tool run \
	  --from grpcio-tools==1.76.0 python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. messages.proto && \
	  sed -i 's/_descriptor_pool.Default()/_descriptor_pool.DescriptorPool()/' messages_pb2.py

lock: setup      ## pin anew what pyproject.toml asks for
	@export UV_SYSTEM_CERTS=1; uv="$(VENV)/bin/uv pip compile pyproject.toml --quiet --generate-hashes --no-emit-index-url --no-header"; \
	  $$uv --all-extras --group dev --output-file requirements.lock && \
	  $$uv --extra operator --constraints requirements.lock --output-file deploy/operator.lock && \
	  $$uv --extra server --extra cache --extra tracing --constraints requirements.lock --output-file deploy/model-server.lock && \
	  $$uv --extra server --extra cache --extra tracing --extra torch --constraints requirements.lock --output-file deploy/model-server-torch.lock && \
	  $(VENV)/bin/uv pip compile deploy/downloader/requirements.in --python-version 3.11 --quiet --generate-hashes --no-emit-index-url --no-header \
	    --output-file deploy/downloader/requirements.lock && \
	  $(VENV)/bin/uv pip compile e2e/load/requirements.in --quiet --generate-hashes --no-emit-index-url --no-header \
	    --constraints requirements.lock --output-file e2e/load/requirements.lock

cluster: setup   ## a local Kubernetes cluster; see `.venv/bin/python -m cluster --help`
	@$(RUN) cluster up

clean:           ## remove the virtual environment and all caches of the checkout
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
