PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
IMPORTED = numpy scipy sympy numba pandas sklearn matplotlib lightning torchmetrics pydantic _pytest hypothesis
LOCKED = --no-deps --require-hashes -r requirements.lock

.PHONY: setup demo test docs stress lock sbom clean

setup: .venv/ready

# Made anew when what is to be installed changes; a broken install leaves no stamp. uv takes less than
# half of pip's time; pip goes on where packages come from a place that only pip's settings name. The pip
# that comes with Python may take twice as long as a newer one. Python compiles modules when they are
# first imported: doing so for all of them takes as long as installing.
# All but torch is checked by its hash: torch has a build for each kind of machine, also from other
# places than PyPI, and no hash is that of all. While it is unpacked another core compiles what is
# imported most.
.venv/ready: pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5) and "expected Python 3.11.5 or newer; try: make PYTHON=python3.12 setup")'
	$(PYTHON) -m venv .venv
	$(INSTALL) pip==26.3 uv==0.13.9
	$(BIN)/uv pip install --quiet --no-cache --python .venv $(LOCKED) || $(INSTALL) $(LOCKED)
	cd .venv/lib/python*/site-packages && ../../../bin/python -m compileall -q -x '/tests?/' $(IMPORTED) & \
		$(INSTALL) -c constraints.txt torch && wait
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

demo: setup
	$(BIN)/ptrnet solve hull examples/capitals.csv --plot capitals.png
	@echo "The hull of Europe's capitals, as the shipped model \"hull\" points it out, is drawn in capitals.png"

# The tests of a file run in one process: they share a browser, an export, what is compiled.
# Many tests start processes: without bytecode, where the environment forbids it, each would compile
# PyTorch's modules anew.
test: export PYTHONDONTWRITEBYTECODE =
test: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# Half an hour of two cores, and it goes on where it was stopped; in part, as
# make stress PARTS="damage lines/csv-hull" SHARE=0.05. State and findings are in runs/stress/.
PARTS ?=
SHARE ?= 1
stress: export PYTHONDONTWRITEBYTECODE =
stress: setup
	$(BIN)/python -m tests.stress --parts $(PARTS) --share $(SHARE)

# Renews requirements.lock by pyproject.toml and constraints.txt, for every Python and system.
lock: setup
	$(BIN)/uv pip compile pyproject.toml --extra dev -c constraints.txt --universal --python-version 3.11.5 \
		--generate-hashes --no-emit-package torch --no-header --upgrade --quiet -o requirements.lock

# The tool of the next one; nothing of ptrnet needs it.
build/tools/ready:
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	touch $@

# What is installed, with versions and licences, as CycloneDX has it.
sbom: setup build/tools/ready
	build/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --of JSON --output-reproducible \
		-o build/ptrnet.cdx.json $(BIN)/python
	@echo "The bill of materials is build/ptrnet.cdx.json"

# The site of docs/, into site/; `.venv/bin/mkdocs serve` shows it while you write.
docs: export NO_MKDOCS_2_WARNING = 1
docs: setup
	$(BIN)/mkdocs build --strict
	@echo "The site is in site/: open site/index.html"

clean:
	rm -rf .venv capitals.png site
