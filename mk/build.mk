# Builds: libsupply, the jars, and the environments of Python. Debian packages come first.

.PHONY: python docs packages-for-release build spark build-every-spark reference packages packages-for-tests \
	packages-for-archives packages-for-cluster packages-for-matrix packages-for-wheel packages-for-python packages-for-bench \
	packages-for-long packages-for-arm64 packages-offload package library library-with-tests library-with-fail-points library-with-mpich

build: library spark ## libsupply and its programs, the Supplier's jar, the Python environment

# Of make's own variables it gets only what the user has set: PYTHON's default is for the build.
python: ## the Python package, for a Python and the PySpark there: PYTHON=, the active environment, or build/env, which it makes
	@launch/dev/install-python $(SPARK_VERSION)

# The Spark side alone.
spark: $(JAR) $(SPARK_READY)

build-every-spark: | build
	@$(MAKE) --no-print-directory SPARK=4.1 spark
	@$(MAKE) --no-print-directory SPARK=3.5 spark

reference: $(JAR) $(SPARK_READY) $(WHEEL_READY) ## docs/OPTIONS.md, docs/PYTHON-API.md and the table of docs/TYPES.md, from what declares them
	@$(PYTHON) proto/make_tables.py docs/TYPES.md
	@java -cp "$(JAR):$$(echo $(SPARK_VENV)/lib/python3*/site-packages/pyspark/jars)/*" supply.tools.OptionsReference docs/OPTIONS.md
	@$(WHEEL_VENV)/bin/python launch/dev/python_api.py docs/PYTHON-API.md

# With --quiet, MkDocs would not count warnings. The theme would announce its own end (docs/design/packaging.md).
docs: $(DOCS_READY) ## the documentation site, with its links checked, in build/docs (DOCS_REF=v0.3.0: links to sources lead to that tag)
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --config-file configs/dev/docs/mkdocs.yml > build/docs.log 2>&1 \
		|| { cat build/docs.log >&2; exit 1; }
	@echo "docs: ok, $(DOCS)/index.html"

packages: ## the Debian packages that are missing
	@PYTHON=$(PYTHON) launch/dev/install-packages

packages-for-tests packages-for-cluster packages-for-wheel packages-for-archives packages-for-python packages-for-release packages-for-matrix packages-for-bench packages-for-long packages-for-arm64: packages-for-%:
	@PYTHON=$(PYTHON) launch/dev/install-packages --for-$*

packages-offload: # the Debian packages of libsupply_linalg, which supply-server loads: OpenBLAS and SLEPc, about 100
	@PYTHON=$(PYTHON) launch/dev/install-packages --for-offload

# The tests are most of the C side: who only runs the product need not wait for them. Once configured, they stay built.
library: | packages
	@echo 'build: libsupply (log: build/mpi-client.log)'
	@mkdir -p build
	@{ $(CONFIGURE) -B build/mpi-client -DCMAKE_BUILD_TYPE=Release \
		$(or $(C_TESTS),$$([ -e build/mpi-client/CMakeCache.txt ] || echo -DSUPPLY_BUILD_TESTS=OFF)) && \
		$(CMAKE) --build build/mpi-client --parallel $(JOBS); } > build/mpi-client.log 2>&1 \
		|| { cat build/mpi-client.log >&2; exit 1; }
	@grep '^skipped:' build/mpi-client.log >&2 || true

# Name it in front of other targets that need the library: the first one that does configures it.
library-with-tests: C_TESTS := -DSUPPLY_BUILD_TESTS=ON
library-with-tests: library

library-with-fail-points: | packages
	@mkdir -p build
	@{ $(CONFIGURE) -B build/mpi-client-faults -DCMAKE_BUILD_TYPE=Release -DSUPPLY_FAIL_POINTS=ON \
		-DSUPPLY_BUILD_TESTS=OFF -DSUPPLY_BUILD_EXAMPLES=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON && \
		$(CMAKE) --build build/mpi-client-faults --parallel $(JOBS); } > build/mpi-client-faults.log 2>&1 \
		|| { cat build/mpi-client-faults.log >&2; exit 1; }

# Debian's SLEPc is for Open MPI. Debian's names: there both MPIs can be installed, and Open MPI is the one that is called mpirun.
library-with-mpich: | packages
	@mkdir -p build
	@! type mpicc.mpich mpiexec.mpich > /dev/null 2>&1 || \
		{ $(CONFIGURE) -B build/mpi-client-mpich -DCMAKE_BUILD_TYPE=Release -DMPI_C_COMPILER=mpicc.mpich -DMPIRUN=mpiexec.mpich -DSUPPLY_LINALG=none && \
		$(CMAKE) --build build/mpi-client-mpich --target mpi_test --parallel $(JOBS); } > build/mpi-client-mpich.log 2>&1 \
		|| { cat build/mpi-client-mpich.log >&2; exit 1; }

# Any warning about the product is an error. On a new machine Zinc compiles its own bridge and warns about that: into the log.
$(JAR): $(JAR_SOURCES) | $(PACKAGES_FOR_JAR)
	@echo 'build: $@ (some minutes; log: build/spark-supplier.log)'
	@mkdir -p build
	@$(LMDB_LIBRARY)
	@$(MAVEN) package -Dmaven.test.skip=true -DskipTests > build/spark-supplier.log 2>&1 || { cat build/spark-supplier.log >&2; exit 1; }
	@touch $@

$(VENV_READY): configs/dev/requirements.txt | packages
	@echo 'build: $(VENV) with Spark $(call spark_version,$(USUAL_SPARK))'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement configs/dev/requirements.txt
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --use-pep517 --no-build-isolation pyspark==$(call spark_version,$(USUAL_SPARK))
	@touch $@

ifneq ($(SPARK),$(USUAL_SPARK))
# Another Spark in an environment of its own, which has all other packages from the first one.
$(SPARK_READY): $(VENV_READY)
	@echo 'build: $(SPARK_VENV) with Spark $(SPARK_VERSION)'
	@rm -rf $(SPARK_VENV)
	@$(PYTHON) -m venv --without-pip $(SPARK_VENV)
	@realpath $(VENV)/lib/python3*/site-packages > $$(echo $(SPARK_VENV)/lib/python3*/site-packages)/packages.pth
	@$(SPARK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --ignore-installed --use-pep517 --no-build-isolation \
		pyspark==$(SPARK_VERSION)
	@ln -sfn $$(realpath $(SPARK_VENV)/lib/python3*/site-packages/pyspark) $(SPARK_HOME)
	@touch $@
endif

$(LINT_READY): configs/dev/lint/requirements.txt
$(DOCS_READY): configs/dev/docs/requirements.txt
$(RELEASE_READY): configs/dev/release-requirements.txt
$(LINT_READY) $(DOCS_READY) $(RELEASE_READY): | packages
	@echo 'build: $(@D)'
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(DATUM): proto/datum.proto $(VENV_READY)
	@mkdir -p $(@D)
	@$(VENV)/bin/python -m grpc_tools.protoc --proto_path=proto --python_out=$(@D) proto/datum.proto

$(DIGITS): launch/dev/make-digits-lmdb $(DATUM)
	@echo 'data: $@'
	@rm -rf $@ && launch/dev/make-digits-lmdb $@

$(WHEEL_ENVIRONMENT): $(addprefix mpi-client/python/tests/,requirements.txt requirements-trainers.txt) $(VENV_READY) | packages-for-python
	@echo 'build: $(WHEEL_VENV)'
	@rm -rf $(WHEEL_VENV) && $(PYTHON) -m venv --system-site-packages $(WHEEL_VENV)
	@$(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement mpi-client/python/tests/requirements.txt
	@$(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps \
		--requirement mpi-client/python/tests/requirements-trainers.txt
# PySpark is the one of build/venv, without the newer numpy there.
	@site=$$(echo $(CURDIR)/$(WHEEL_VENV)/lib/python3*/site-packages) && \
		ln -sfn $$(realpath $(VENV)/lib/python3*/site-packages/pyspark) $$(realpath $(VENV)/lib/python3*/site-packages/py4j) $$site
	@touch $@

# Its package is that of the other environment. An index with wheels of PyTorch for CPUs alone (PIP_EXTRA_INDEX_URL) saves CUDA.
$(NEWEST_READY): $(addprefix mpi-client/python/tests/,requirements-newest.txt requirements-newest-cuda.txt) | $(WHEEL_READY)
	@echo 'build: $(NEWEST_VENV)'
	@rm -rf $(NEWEST_VENV) && $(PYTHON) -m venv $(NEWEST_VENV)
	@$(NEWEST_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@$(NEWEST_VENV)/bin/python -c 'import torch' 2> /dev/null || $(NEWEST_VENV)/bin/pip install --quiet --disable-pip-version-check \
		--no-deps --requirement mpi-client/python/tests/requirements-newest-cuda.txt
	@cd $(NEWEST_VENV)/lib/python3*/site-packages && for package in spark_supplier pyspark py4j; do \
		ln -sfn $(CURDIR)/$(WHEEL_VENV)/lib/python3*/site-packages/$$package; done
	@touch $@

# The wheel that users get, with the launchers and the jars that are there, but compiled for this machine alone.
$(WHEEL_READY): $(WHEEL_SOURCES) $(JAR) $(WHEEL_ENVIRONMENT)
	@echo 'build: the wheel of the Python package'
	@env -u MAKEFLAGS -u MFLAGS $(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
		--no-build-isolation --config-settings build-dir=build/wheel .
	@touch $@

# The package there from the sources, in seconds: what is compiled of C and C++, and the Python files. The jar stays the one of the wheel.
package:
	@[ -e build/wheel/CMakeCache.txt ] && [ -e $(WHEEL_READY) ] || $(MAKE) --no-print-directory $(WHEEL_READY)
	@$(CMAKE) --build build/wheel --target _core > build/package.log 2>&1 || { cat build/package.log >&2; exit 1; }
	@installed=$$(echo $(WHEEL_VENV)/lib/python3*/site-packages/spark_supplier) && cp build/wheel/_core*.so $$installed && \
		find $$installed -name '*.py' -delete && tar --create --directory mpi-client/python/src/spark_supplier . | tar --extract --directory $$installed
