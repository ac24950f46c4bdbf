# Every target does its own set-up, in .venv, with nothing but Python 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# A newcomer's shell must not lend the tests its own packages.
unexport PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX

CORE = __init__ backoff curves durations http_retry instants jitter options presets refusals schedule seeded
# Each module of the core is covered by its own tests.
CORE_TESTS = $(patsubst tests/test___init__.py,tests/test_package.py,$(CORE:%=tests/test_%.py))
comma := ,
empty :=
space := $(empty) $(empty)
CORE_FILES = $(subst $(space),$(comma),$(CORE:%=backoff_schedule/%.py))

# A file stays with one worker, because the blocks of a page share their names.
# More of them than cores, because many tests wait.
WORKERS = --numprocesses=4 --dist=loadfile

.PHONY: demo test stress check pictures docs bench claims mutants format lint types layers coverage wheel clean

demo: $(VENV)/.demo ## run the main job on this machine, told as a story
	@$(BIN)/backoff-schedule demo

test: $(VENV)/.test ## run the tests, every code block of the docs among them
	$(BIN)/python -m pytest $(WORKERS)

stress: $(VENV)/.test ## kill 200 workers on each database, and look whether anything was lost
	$(BIN)/python -m tests.delivery.stress --kills 200

# Each picture in light and dark; the page shows the one that fits.
PICTURES = docs/pictures

pictures: $(VENV)/.test ## draw the pictures of the site
	@mkdir -p $(PICTURES)
	@for theme in "" --dark; do \
	    draw() { \
	        name=$$1; shift; \
	        $(BIN)/backoff-schedule show $$theme --plot "$(PICTURES)/$$name$$theme.svg" "$$@" >/dev/null; \
	    }; \
	    draw grow-a-delay --base 1m --max 6h --jitter 0.2 --attempts 12 && \
	    draw jitters --attempts 10 --schedule "base=1s,max=1m,jitter=0.2,label=0.2" \
	        --schedule "base=1s,max=1m,jitter=full,label=full" \
	        --schedule "base=1s,max=1m,jitter=0.5/1.0,label=0.5 to 1.0" && \
	    draw presets --attempts 12 --schedule preset=svix --schedule preset=standard-webhooks \
	        --schedule preset=postel --schedule preset=feed-poll || exit 1; \
	done
	@$(BIN)/python -m pictures.circuit $(PICTURES)

docs: pictures $(VENV)/.docs ## build the site into build/site; a dead link or an unknown name fails
	$(BIN)/zensical build --clean --strict

check: lint types layers test coverage docs wheel ## all that a change has to pass

bench: $(VENV)/.bench ## compare with other packages, side by side
	$(BIN)/python -m benchmarks

# Not in `check`: a new release of another package is no fault of a change to this one.
claims: $(VENV)/.bench $(VENV)/.test ## run what docs/comparison.md says of other packages
	$(BIN)/python -m pytest tests/peers

mutants: $(VENV)/.mutants ## change the core in every small way; a test has to notice each
	rm -rf mutants
	$(BIN)/mutmut run
	$(BIN)/mutmut results
	@$(BIN)/mutmut export-cicd-stats
	@$(BIN)/python -c 'import json; found = json.load(open("mutants/mutmut-cicd-stats.json")); \
	    noticed, made = found["killed"] + found["timeout"], found["total"]; \
	    print("%d of %d mutants noticed: %.1f %%" % (noticed, made, 100 * noticed / made))'

format: $(VENV)/.lint ## put the source into the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.lint
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

layers: $(VENV)/.lint
	$(BIN)/lint-imports

coverage: $(VENV)/.test ## every branch of the core, by the core's own tests
	$(BIN)/coverage run -m pytest $(CORE_TESTS)
	$(BIN)/coverage report --include=$(CORE_FILES) --fail-under=100

wheel: $(VENV)/.package ## build the wheel and use it in an empty environment
	rm -rf build/wheel build/empty
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet --no-index build/wheel/*.whl
	cd build && empty/bin/backoff-schedule show --base 1m --max 6h --attempts 3
	cd build && empty/bin/python -m backoff_schedule retry-after 120
	cd build && empty/bin/backoff-schedule demo

clean:
	rm -rf .venv .venv-* build mutants .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "$(PYTHON) is older than Python 3.11; try: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.package: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.%: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --group $*
	@touch $@
