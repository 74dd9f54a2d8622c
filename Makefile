# `make help` lists the targets. Each makes the environment first, once, from the lock of the newest set of versions that
# the system can have; TFX=1.16|1.21 or PYTHON=3.12|/path/to/python asks for another (docs/sets.md).

RECIPE ?= taxi
SET    ?=
FLAGS  ?=
IMAGE  ?= millrace:0.1.0
ENGINE ?= millrace-engine:0.1.0
BIN    := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup browser web pipeline serve inspect flink flink-stop kubeflow test test-next e2e chaos lint format bench-taxi bench-edit bench-blessing bench-seeds bench-ingest bench-intervals bench-own-data bench-scale bench-training bench-serving bench-flink image wheel lock clean

help:  ## List the targets
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup:  ## Make the environment (.venv) if the lock changed: TFX=1.16 PYTHON=3.12
	@./scripts/setup.sh

pipeline: setup  ## Run the pipeline: RECIPE=taxi SET="trainer.batch_size=64 …"
	@$(BIN)/millrace run $(RECIPE) $(foreach setting,$(SET),--set $(setting))

serve: setup  ## Serve what was pushed: RECIPE=taxi FLAGS="--rest_api_port=8501 …"
	@$(BIN)/millrace serve $(RECIPE) $(FLAGS)

inspect: setup  ## Look at runs, data and models in a browser: FLAGS="--port 8090 --open"
	@$(BIN)/millrace inspect $(FLAGS)

flink: setup  ## Start a Flink cluster here, for --env flink: FLAGS="--rest-port 8181 …"
	@$(BIN)/python -m flink.cluster start $(FLAGS)

flink-stop: setup  ## Stop it
	@$(BIN)/python -m flink.cluster stop

test: setup browser  ## Run all tests: FLAGS="-k taxi"
	@$(BIN)/pytest -n 2 --dist loadfile $(FLAGS)

test-next: setup  ## Run them on TFX 1.21 in Debian 13, where this system cannot have it: FLAGS="-k taxi"
	@./scripts/test_next.sh

e2e: setup browser  ## Run only the end-to-end tests
	@$(BIN)/pytest -n 2 --dist loadfile -m e2e

chaos: setup  ## Kill runs at 50 moments, fill the disk, kill the database: FLAGS="--kills 10 --seed 7"
	@PYTHONPATH=.:tests $(BIN)/python tests/end_to_end/chaos.py $(FLAGS)

browser: setup  ## Install Chromium for the tests where there is none
	@./scripts/browser.sh

web:  ## Build the script of the pages anew from ui/web (needs Node 20; users never do)
	@cd ui/web && npm ci --silent && npm run --silent build

lint: setup  ## Check style, types, who imports whom, and that what is imported is declared
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@./scripts/imports.sh

format: setup  ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

kubeflow: setup  ## Compile and submit to Kubeflow Pipelines: RECIPE=taxi SET="…" FLAGS="--wait …"
	@$(BIN)/millrace kubeflow submit $(RECIPE) $(foreach setting,$(SET),--set $(setting)) $(FLAGS)

bench-taxi: setup  ## Time a taxi run against stock TFX and against a plain script
	@$(BIN)/python -m benchmarks.taxi

bench-edit: setup  ## Time the loop of editing and running again: model.py, features.py, nothing
	@$(BIN)/python -m benchmarks.edit

bench-blessing: setup  ## Simulate whether blessing by evidence keeps its 5 %
	@$(BIN)/python -m benchmarks.blessing

bench-scale: setup  ## Time taxi's rows repeated 20, 200, 2,000 times against a plain script, Beam and stock TFX: FLAGS="plain"
	@$(BIN)/python -m benchmarks.scale $(FLAGS)

bench-seeds: setup  ## Train the taxi recipe with three seeds: its metrics, mean and deviation
	@$(BIN)/python -m benchmarks.taxi_seeds

bench-ingest: setup  ## Time ingest against stock CsvExampleGen
	@$(BIN)/python -m benchmarks.ingest

bench-intervals: setup  ## Measure how often the intervals of areas under curves hold the truth
	@$(BIN)/python -m benchmarks.intervals

bench-own-data: setup  ## From files to served models by `millrace new`, against scikit-learn on the same rows
	@$(BIN)/python -m benchmarks.own_data

bench-training: setup  ## Measure the Trainer: precision, fit, input, workers, recompute, TF Lite
	@$(BIN)/python -m benchmarks.training

bench-serving: setup  ## Measure the model server: REST, gRPC, FastAPI, heavy models, batching, swaps
	@$(BIN)/python -m benchmarks.serving

bench-flink: setup  ## Compare Flink with memory on taxi x 20: equal results, seconds
	@$(BIN)/python -m benchmarks.flink

image:  ## Build the image of all nodes and of Beam's workers, and the one without recipes: IMAGE=… ENGINE=…
	@docker version >/dev/null 2>&1 || { echo "make image needs a Docker engine: \`docker version\` finds none" >&2; exit 1; }
	docker build --target engine --tag $(ENGINE) .
	docker build --tag $(IMAGE) .

wheel: setup  ## Build the wheel of Millrace itself, for projects elsewhere, into dist/
	@rm -rf build dist
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist
	@rm -rf build
	@ls dist/*.whl

lock: setup  ## Compile both sets' locks, and the image's part of the newer one, anew from setup.py
	@$(BIN)/uv pip compile setup.py --extra dev --generate-hashes --python-version 3.10 --quiet -o requirements.lock
	@$(BIN)/uv pip compile setup.py --extra dev --generate-hashes --python-version 3.11 --universal --quiet \
		-o requirements-tfx-1.21.lock
	@$(BIN)/uv pip compile setup.py --constraints requirements-tfx-1.21.lock --generate-hashes --python-version 3.11 \
		--universal --quiet -o requirements.runtime.lock

clean:  ## Remove everything that runs have made (artifacts/), not the environment (.venv, .trixie)
	rm -rf artifacts
