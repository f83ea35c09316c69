PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: setup demo test docs clean

setup: .venv/ready

# Made anew when what is to be installed changes; a broken install leaves no stamp. The pip that comes
# with Python may take twice as long as the one of the constraints. Python compiles modules when they
# are first imported: doing so for all of them takes as long as installing.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ptrnet needs Python 3.11 or newer; try: make PYTHON=python3.12 setup")'
	$(PYTHON) -m venv .venv
	$(INSTALL) pip
	$(INSTALL) -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/ptrnet solve hull examples/capitals.csv --plot capitals.png
	@echo "The hull of Europe's capitals, as the shipped model \"hull\" points it out, is drawn in capitals.png"

# Many tests start processes: without bytecode, where the environment forbids it, each would compile
# PyTorch's modules anew.
test: export PYTHONDONTWRITEBYTECODE =
test: setup
	$(BIN)/python -m pytest --numprocesses auto

# The site of docs/, into site/; `.venv/bin/mkdocs serve` shows it while you write.
docs: export NO_MKDOCS_2_WARNING = 1
docs: setup
	$(BIN)/mkdocs build --strict
	@echo "The site is in site/: open site/index.html"

clean:
	rm -rf .venv capitals.png site
