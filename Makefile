PYTHON ?= python3
BIN = .venv/bin

.PHONY: setup demo test stress clean

setup: .venv/ready

# Made anew when what is to be installed changes; a broken install leaves no stamp. Python compiles
# modules when they are first imported: doing so for all of them takes as long as installing.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ptrnet needs Python 3.11 or newer; try: make PYTHON=python3.12 setup")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/ptrnet solve hull examples/capitals.csv --plot capitals.png
	@echo "The hull of Europe's capitals, as the shipped model \"hull\" points it out, is drawn in capitals.png"

# Many tests start processes: without bytecode, where the environment forbids it, each would compile
# PyTorch's modules anew.
test: export PYTHONDONTWRITEBYTECODE =
test: setup
	$(BIN)/python -m pytest --numprocesses auto

# Half an hour of two cores, and it goes on where it was stopped; in part, as
# make stress PARTS="damage lines/csv-hull" SHARE=0.05. Its state and findings are in runs/stress/.
PARTS ?=
SHARE ?= 1
stress: export PYTHONDONTWRITEBYTECODE =
stress: setup
	$(BIN)/python -m tests.stress --parts $(PARTS) --share $(SHARE)

clean:
	rm -rf .venv capitals.png
