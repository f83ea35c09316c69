PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
IMPORTED = numpy scipy sympy numba pandas sklearn matplotlib lightning_fabric pydantic _pytest hypothesis
LOCKED = --no-deps --require-hashes -r requirements.lock

.PHONY: setup demo test check docs stress lock sbom clean

setup: .venv/ready

# Make installs again if one of these files has changed, or if the last install failed.
# - We upgrade pip first, because the pip that comes with Python may take twice as long.
# - uv takes less than half of pip's time. If it fails, because only pip's settings name the package
#   index, pip installs.
# - requirements.lock has a hash for each package except torch, which has different builds.
# - Compiling all modules to bytecode would take as long as installing. So we compile only those that
#   are imported most, on another core, while pip unpacks torch.
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
	$(BIN)/ptrnet solve reading-order examples/newspaper.xml --output ordered.xml --plot order.png
	@echo "order.png shows in which order the shipped model \"reading-order\" reads a page"

# The tests of a file run in one process, because they share a browser, exports and compiled kernels.
# Many tests start processes. If the environment forbids bytecode files, each of them would compile
# PyTorch's modules again, so we allow these files here. Each process would start a thread for each
# core for NumPy's products, and these threads wait for each other: they took a quarter of the time of
# the tests that fit models.
test: export PYTHONDONTWRITEBYTECODE =
test: export OPENBLAS_NUM_THREADS = 1
test: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# The sources, the built package, the site and the notebooks. `make test` tests what ptrnet does.
check: export PYTHONDONTWRITEBYTECODE =
check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python -m pytest checks --numprocesses auto --dist loadfile

# Takes half an hour on two cores. To run only some parts: make stress PARTS="damage or csv-hull" SHARE=0.05.
PARTS ?=
SHARE ?= 1
stress: export PYTHONDONTWRITEBYTECODE =
stress: setup
	STRESS_SHARE=$(SHARE) $(BIN)/python -m pytest tests/stress -k "$(PARTS)" --numprocesses auto

# Writes requirements.lock again from pyproject.toml and constraints.txt, for each Python and system.
lock: setup
	$(BIN)/uv pip compile pyproject.toml --extra dev -c constraints.txt --universal --python-version 3.11.5 \
		--generate-hashes --no-emit-package torch --no-header --upgrade --quiet -o requirements.lock

# The tool that `make sbom` runs; ptrnet itself does not need it.
build/tools/ready:
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	touch $@

# Lists the installed packages with versions and licences, in the format of CycloneDX.
sbom: setup build/tools/ready
	build/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --of JSON --output-reproducible \
		-o build/ptrnet.cdx.json $(BIN)/python
	@echo "The bill of materials is build/ptrnet.cdx.json"

# Builds the site from docs/ into site/; `.venv/bin/mkdocs serve` shows it while you write.
docs: export NO_MKDOCS_2_WARNING = 1
docs: setup
	$(BIN)/mkdocs build --strict
	@echo "The site is in site/: open site/index.html"

clean:
	rm -rf .venv order.png ordered.xml site
