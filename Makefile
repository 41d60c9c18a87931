# Every target works in a fresh clone with nothing prepared: they make the environment first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: install page browser pictures demo lesson test lint bench bench-train bench-decode bench-choices bench-invariance bench-quality drills clean

install: $(STAMP)

NATIVE := $(wildcard regard/engine/*.cpp regard/engine/*.inc regard/layers/*.cpp regard/layers/*.inc)

$(STAMP): pyproject.toml constraints.txt setup.py $(NATIVE)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[images,lint,serve,tensorboard,test,tune]'
	@touch $(STAMP)

# The page as it is shipped, from its source; Node is needed for this and for the test that the two agree.
page:
	cd web && npm ci --no-audit --no-fund && npm run build

# The browser that the tests of the page drive.
browser:
	@test -x /usr/bin/chromium || apt-get install --yes --quiet chromium || (apt-get update --quiet && apt-get install --yes --quiet chromium)

# Pictures of every view of the page, in docs/pictures/.
pictures: install browser
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.pictures

demo: install
	$(BIN)/regard demo

# The lesson as it is shipped.
lesson: install
	OMP_NUM_THREADS=1 $(BIN)/regard demo --all -o regard/lab/lesson/models
	rm regard/lab/lesson/models/lesson.html
	$(BIN)/python -m bench.lesson

test: install browser
	$(BIN)/python -m pytest

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

drills: install
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.drills.all

bench: install
	$(BIN)/python -m bench.ladder

bench-train: install
	$(BIN)/python -m bench.train

bench-decode: install
	$(BIN)/python -m bench.decode

bench-choices: install
	$(BIN)/python -m bench.choices

bench-invariance: install
	$(BIN)/python -m bench.invariance

bench-quality: install
	$(BIN)/python -m bench.quality

clean:
	rm -rf .venv .venv-peers web/node_modules demo build *.egg-info regard/engine/*.so regard/layers/*.so
