# Formats, checks and tests.

.PHONY: audit format lint lint-c lint-python lint-shell lint-scala lint-prose test test-c test-long test-fuzz test-model \
	test-scala test-scala-3.5 test-types-3.5 test-python test-wheel test-package test-estimators test-programs test-connect test-trainers test-trainers-debian \
	test-trainers-newest test-python-faults \
	test-faults test-sanitizers test-gpu fuzz soak test-python-cluster test-cluster test-kubernetes test-sessions test-mpich test-arm64 built-for-tests test-ranks-side \
	test-spark-side test-row

C_FILES = $(shell git ls-files '*.c' '*.h' '*.cc')
PYTHON_FILES = $(shell git grep -lE '^\#!.*python' -- ':!*.md') $(shell git ls-files '*.py' '*.pyi')
SHELL_FILES = $(shell git grep -lE '^\#!.*(bash|/sh)' -- ':!*.md') $(shell git ls-files '*.sh')

format: $(LINT_READY) ## formats every source file
	@$(LINT)/bin/clang-format -i $(C_FILES)
	@$(LINT)/bin/ruff format --quiet $(PYTHON_FILES)
	@$(LINT)/bin/shfmt -i 4 -ci -w $(SHELL_FILES)
	@$(MAVEN) spotless:apply

# Checks that would otherwise be comments of reviewers. Each linter reads its own settings at the root.
lint: lint-c lint-python lint-shell lint-scala lint-prose ## checks formats, likely mistakes and the language of the documents
	@echo 'lint: ok'

# What is compiled for several programs is checked once, and what needs a library that is not installed is skipped aloud.
lint-c: $(LINT_READY) library
	@$(PYTHON) -c 'import json; commands = json.load(open("build/mpi-client/compile_commands.json")); \
		json.dump(list({each["file"]: each for each in reversed(commands)}.values()), open("$(LINT)/compile_commands.json", "w"))'
	@$(LINT)/bin/clang-format --dry-run --Werror $(C_FILES)
	@git ls-files 'mpi-client/src/*.c' 'mpi-client/tools/*.c' 'mpi-client/examples/*.c' 'mpi-client/server/*.c' 'mpi-client/exchange/*.c' 'mpi-client/remote/*.c' 'mpi-client/mpi/*.c' 'mpi-client/routines/*.c' ':!mpi-client/src/base/fail_point.c' | \
		while read -r file; do grep --quiet "/$$file\"" $(LINT)/compile_commands.json && echo "$$file" || \
			echo "lint: skipped: $$file is not compiled here" >&2; done | \
		xargs --max-procs $(JOBS) --max-args 8 $(LINT)/bin/clang-tidy --quiet -p $(LINT) 2> /dev/null
	@$(CMAKE) -S bench/c -B build/bench-c > /dev/null
	@git ls-files 'bench/c/*.c' | xargs --max-procs $(JOBS) --max-args 8 $(LINT)/bin/clang-tidy --quiet -p build/bench-c 2> /dev/null

lint-python: $(LINT_READY)
	@$(LINT)/bin/ruff format --quiet --check $(PYTHON_FILES)
	@$(LINT)/bin/ruff check --quiet $(PYTHON_FILES)
	@$(LINT)/bin/mypy
	@$(LINT)/bin/python .ci/check-arrows

lint-shell: $(LINT_READY)
	@$(LINT)/bin/shfmt -i 4 -ci -d $(SHELL_FILES)
	@$(LINT)/bin/shellcheck --external-sources $(SHELL_FILES)

lint-scala: | packages
	@$(MAVEN) spotless:check

# Vale is a Go module. Without Go its check is skipped aloud. docs/PYTHON-API.md is made of docstrings, which are checked.
lint-prose:
	@if type go > /dev/null 2>&1; then \
		test -x $(LINT)/vale || { echo 'build: $(LINT)/vale'; GOBIN=$(CURDIR)/$(LINT) go install github.com/vale-cli/vale/v3/cmd/vale@v3.21.0; }; \
		$(LINT)/vale --minAlertLevel=error $$(git ls-files '*.md' '*.scala' '*.py' '*.[ch]' ':!docs/PYTHON-API.md'); \
	else echo 'lint: skipped: Vale checks documents and comments and needs Go, which is not installed' >&2; fi

# Every suite runs, also if an earlier one fails; the last command counts and gives the verdict. Three rows of suites run at the same
# time: a suite keeps one process busy, or waits for one. What the other rows print comes last. (A shell starts a background
# command with SIGINT ignored.)
IN_BACKGROUND = env --default-signal=INT,QUIT $(MAKE) --no-print-directory
test: built-for-tests ## tests every part: C, Scala, Python, both languages together, and the model of their protocol
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	@$(IN_BACKGROUND) test-ranks-side > $(REPORTS)/ranks-side.log 2>&1 & ranks=$$!; \
		$(IN_BACKGROUND) test-package > $(REPORTS)/package.log 2>&1 & package=$$!; \
		$(IN_BACKGROUND) test-spark-side & spark=$$!; \
		trap 'kill $$ranks $$package $$spark; tail --lines 20 $(REPORTS)/ranks-side.log $(REPORTS)/package.log; exit 143' TERM; \
		wait; cat $(REPORTS)/ranks-side.log $(REPORTS)/package.log
	@.ci/count-tests $(addprefix $(REPORTS)/,$(foreach row,$(ROWS),$(REPORTS_OF_$(row))))

ROWS := ranks-side package spark-side
REPORTS_OF_ranks-side := ctest.xml fuzz.xml model.xml mpich.xml faults.xml cluster.xml programs.xml
REPORTS_OF_package := package.xml
REPORTS_OF_spark-side := scala pytest.xml estimators.xml
# Not of `make test`.
REPORTS_OF_trainers-debian := trainers-debian.xml
REPORTS_OF_trainers-newest := trainers-newest.xml

# For machines that share the work.
test-row: built-for-tests ## one of the rows of `make test`: ROW=ranks-side, package or spark-side; or trainers-debian or trainers-newest
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	-@$(MAKE) --no-print-directory test-$(ROW)
	@.ci/count-tests $(addprefix $(REPORTS)/,$(REPORTS_OF_$(ROW)))

test-long: packages-for-long built-for-tests ## what `make test` leaves out: long tests, the sanitizers, the whole model, suites with the other Spark, about 40 minutes
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	-@$(MAKE) --no-print-directory test-sanitizers
	-@$(MAKE) --no-print-directory test-model MODEL='--kinds large,mutation,witness'
	-@$(MAKE) --no-print-directory test-scala SUITES=-DtagsToInclude=long
	-@$(MAKE) --no-print-directory test-scala-3.5
	-@$(MAKE) --no-print-directory test-types-3.5
	-@$(MAKE) --no-print-directory --keep-going TESTS=long test-python test-package test-estimators test-programs test-python-faults test-python-cluster
	@.ci/count-tests $(addprefix $(REPORTS)/,sanitized.xml model.xml scala scala-3.5 types-3.5.xml pytest.xml package.xml estimators.xml programs.xml faults.xml cluster.xml)

# After the packages, two builds at a time: one downloads while the other compiles.
built-for-tests: | packages-for-tests
	@$(MAKE) --no-print-directory library-with-tests
	@$(MAKE) --no-print-directory --jobs 2 build $(DIGITS) $(WHEEL_READY) $(DOCS_READY)
	@$(MAKE) --no-print-directory --jobs 2 build-every-spark $(SPARK_CLASSES)

test-ranks-side:
	-@$(MAKE) --no-print-directory test-c
	-@$(MAKE) --no-print-directory test-fuzz
	-@$(MAKE) --no-print-directory test-model MODEL='--kinds holds,ends'
	-@$(MAKE) --no-print-directory test-mpich
	-@$(MAKE) --no-print-directory test-python-faults
	-@$(MAKE) --no-print-directory test-python-cluster
	-@$(MAKE) --no-print-directory test-programs

test-spark-side:
	-@$(MAKE) --no-print-directory test-scala
	-@$(MAKE) --no-print-directory test-python
	-@$(MAKE) --no-print-directory test-estimators

test-faults: library-with-tests build library-with-fail-points $(DATUM) ## every fault test: both sides killed and stopped at each step, about 10 minutes
	@$(call pytest,$(SPARK_VENV)) launch/tests/faults

test-cluster: packages-for-tests library-with-tests build build-every-spark $(DATUM) $(DIGITS) ## every test on a real HDFS, YARN and Slurm with two nodes, about 10 minutes
	@$(call pytest,$(SPARK_VENV)) -rs launch/tests/cluster

# The conftest of launch/tests is for another Python.
test-kubernetes: packages-for-cluster build $(WHEEL_READY) ## Supplier.run on a real Kubernetes with two nodes, and its failures; skipped aloud where it cannot start
	@$(call pytest,$(WHEEL_VENV)) -rs --confcutdir launch/tests/kubernetes launch/tests/kubernetes

# SESSIONS=local,connect repeats only some columns.
test-sessions: packages-for-cluster build $(WHEEL_READY) ## five programs of the pages in every kind of session, about 25 minutes: the table of docs/TESTED.md
	@$(WHEEL_VENV)/bin/python launch/dev/session-matrix $(if $(SESSIONS),--only $(SESSIONS))

test-mpich: packages-for-tests build library-with-mpich $(DIGITS) ## the ranks with MPICH instead of Open MPI; skipped aloud where it is not installed
	@mkdir -p $(REPORTS)
	@$(call pytest,$(SPARK_VENV)) -rs --junitxml $(REPORTS)/mpich.xml launch/tests/mpich

# Also with the jar's library of LMDB for aarch64, which needs the compiler.
test-arm64: packages-for-tests packages-for-arm64 ## the C tests, the wheel and runs of Spark on aarch64, by qemu, about 40 minutes; skipped aloud where it cannot start
	@$(MAKE) --no-print-directory jars $(VENV_READY) $(DIGITS)
	@mkdir -p $(REPORTS)
	@$(call pytest,$(VENV)) -rs --timeout 3000 --confcutdir launch/tests/arm64 --junitxml $(REPORTS)/arm64.xml launch/tests/arm64

test-sanitizers: packages-for-tests ## the C tests under the address, undefined behaviour and thread sanitizers and valgrind, about 10 minutes
	@mkdir -p $(REPORTS)
	@mpi-client/tests/sanitized --junit $(REPORTS)/sanitized.xml

# With a Python that has the package (make python), PyTorch with CUDA, pytest, and for the rest PySpark, CuPy and JAX.
test-gpu: GPU_PYTHON ?= python3
test-gpu: ## what needs a GPU, with the Python of GPU_PYTHON=python3; skipped aloud without one
	@$(GPU_PYTHON) -m pytest -q -rs -p no:cacheprovider --timeout 300 $(addprefix mpi-client/python/tests/test_device,.py _copies.py _exchange.py _run.py)

# Most inputs go to the C side, which takes a hundred times as many a second.
fuzz: packages-for-tests build $(JAZZER) ## fuzzes what both sides read, with INPUTS=10000000 inputs
	@$(MAVEN) test-compile
	@mpi-client/fuzz/run --inputs $$(($(INPUTS) * 98 / 100)) 600
	@spark-supplier/src/test/fuzz/run $$(($(INPUTS) * 2 / 100))
	@echo "fuzz: ok inputs=$(INPUTS)"

JAZZER_VERSION := 0.24.0
$(JAZZER): | packages
	@$(foreach jar,jazzer jazzer-api,mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
		-Dartifact=com.code-intelligence:$(jar):$(JAZZER_VERSION) -DoutputDirectory=$(CURDIR)/$(@D) &&) touch $@

soak: packages-for-tests build library-with-fail-points $(DATUM) $(WHEEL_READY) ## everything with faults at random for MINUTES=30: nothing lost, stuck or left, nothing that grows
	@$(VENV)/bin/python launch/tests/faults/soak $(MINUTES)

# Every record is read with PyYAML, which the documentation's environment has.
audit: $(DOCS_READY) ## known vulnerabilities of what is pinned, from databases that you have cloned: ADVISORIES='FOLDER…' (docs/DEPENDENCIES.md)
	@$(DOCS_VENV)/bin/python launch/dev/audit $(ADVISORIES)

# In a test Spark lives for seconds: its second compiler would take longer than it gives back.
test-python test-wheel test-package test-estimators test-programs test-connect test-trainers test-mpich test-python-faults test-faults test-python-cluster test-cluster test-kubernetes test-sessions: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1

test-c:
	@ctest --test-dir build/mpi-client --output-on-failure --no-tests=error --output-junit $(CURDIR)/$(REPORTS)/ctest.xml

test-fuzz:
	@mpi-client/fuzz/run --junit $(REPORTS)/fuzz.xml 20

# MODEL='--kinds holds,ends' leaves out the large searches, and what tests the model itself.
test-model: ## the model of the protocol, and that each mistake which is put into it is found, some minutes
	@mkdir -p $(REPORTS)
	@JOBS=$(JOBS) proto/model/check --junit $(REPORTS)/model.xml $(MODEL)

# A run that ends early has no report of the suite that ended it: an empty one stands for it.
test-scala: SCALA_REPORTS = $(REPORTS)/scala
test-scala: SUITES ?= -DtagsToExclude=long
test-scala:
	@mkdir -p $(REPORTS)
	@rm -rf $(TARGET)/surefire-reports
	@$(MAVEN) test $(SUITES); status=$$?; mkdir -p $(TARGET)/surefire-reports; \
		[ $$status = 0 ] || grep -qrE '<(failure|error)' $(TARGET)/surefire-reports || : > $(TARGET)/surefire-reports/unfinished.xml; \
		cp -r $(TARGET)/surefire-reports $(SCALA_REPORTS) && exit $$status

# Everything is compiled; what meets Spark's and Scala's own classes is run. launch/tests has whole runs.
test-scala-3.5:
	@$(MAKE) --no-print-directory SPARK=3.5 test-scala SCALA_REPORTS=$(REPORTS)/scala-3.5 \
		SUITES='-Dsuites=supply.run.SupplyJobSuite,supply.run.ResumeSuite,supply.run.PlacedJobSuite -DwildcardSuites=supply.core,supply.linalg,supply.plan,supply.lmdb,supply.rows'

# The table of types with the other PySpark, which stands in front of that of the environment.
test-types-3.5: build-every-spark $(WHEEL_READY)
	@mkdir -p $(REPORTS) build/spark-3.5/python
	@cd build/spark-3.5/python && for package in pyspark py4j; do ln -sfn ../venv/lib/python3*/site-packages/$$package; done
	@PYTHONPATH=$(CURDIR)/build/spark-3.5/python $(WHEEL_PYTEST) -m 'not long' --junitxml $(REPORTS)/types-3.5.xml mpi-client/python/tests/test_types.py

test-python:
	@$(call pytest,$(SPARK_VENV)) -m '$(TESTS)' --junitxml $(REPORTS)/pytest.xml --ignore launch/tests/arm64 --ignore launch/tests/faults --ignore launch/tests/cluster --ignore launch/tests/kubernetes --ignore launch/tests/matrix --ignore launch/tests/mpich --ignore launch/tests/release launch/tests

# The Python package in an environment that has nothing of build/venv. Debian's PyTorch and mpi4py, with their numpy, come
# from the system: the PyTorch of the package index is a hundred times the size.
test-wheel: packages-for-tests build $(WHEEL_READY) $(SPARK_CLASSES) $(DATUM) $(DIGITS) ## the Python package: builds and installs its wheel, and tests it with Spark and mpirun
	@$(WHEEL_PYTEST) mpi-client/python/tests

# Together they are test-wheel without its long tests: so the rows of `test` take about as long as each other.
WHEEL_PYTEST = $(call pytest,$(WHEEL_VENV))
ESTIMATOR_TESTS := $(addprefix mpi-client/python/tests/,test_estimator.py test_linalg.py test_linalg_estimators.py)
PROGRAM_TESTS := $(addprefix mpi-client/python/tests/,test_frames.py test_gpus.py test_notebook.py test_partitions.py test_quiet_runs.py test_restarts.py test_supplier_causes.py \
	test_supplier_deaths.py test_supplier_limits.py)
test-package: $(SPARK_CLASSES)
	@$(WHEEL_PYTEST) -m '$(TESTS)' --junitxml $(REPORTS)/package.xml $(addprefix --ignore=,$(ESTIMATOR_TESTS) $(PROGRAM_TESTS)) mpi-client/python/tests
test-programs: $(SPARK_CLASSES)
	@$(WHEEL_PYTEST) -m '$(TESTS)' --junitxml $(REPORTS)/programs.xml $(PROGRAM_TESTS)
test-estimators: $(SPARK_CLASSES)
	@$(WHEEL_PYTEST) -m '$(TESTS)' --junitxml $(REPORTS)/estimators.xml $(ESTIMATOR_TESTS)

# A JVM that maps Spark's classes from an archive starts in about 60 % of the time. The launchers' JVMs cannot: the folder of their
# settings is in the class path, and archives refuse a folder with files.
test-wheel test-package test-estimators test-programs: SPARK_SUBMIT_OPTS += -XX:SharedArchiveFile=$(CURDIR)/$(SPARK_CLASSES) -Xlog:disable
$(SPARK_CLASSES): mpi-client/python/tests/spark_classes.py $(WHEEL_READY)
	@echo 'build: $@'
	@rm -f $@; home=$$(echo $(CURDIR)/$(WHEEL_VENV)/lib/python3*/site-packages/pyspark); \
		SPARK_HOME=$$home PYSPARK_PYTHON=$(WHEEL_VENV)/bin/python SPARK_SUBMIT_OPTS='-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit=$@ -Xlog:disable' \
		$$home/bin/spark-submit $< > build/spark-classes.log 2>&1 || { cat build/spark-classes.log >&2; exit 1; }

# In the suites of `make test` only test_connect.py and test_hub_settings.py are over Spark Connect.
CONNECT_TESTS := $(addprefix mpi-client/python/tests/test_,attach.py estimator.py hub.py linalg.py linalg_estimators.py ranks.py ranks_and_strangers.py ranks_end.py restarts.py supplier.py \
	supplier_callers.py supplier_causes.py supplier_cut_files.py supplier_inputs.py supplier_limits.py supplier_mpirun.py supplier_results.py supplier_rows.py warm_ranks.py)
test-connect: packages-for-tests build $(WHEEL_READY) ## the tests of spark_supplier once more, in sessions of Spark Connect, about 20 minutes
	@SUPPLY_TEST_SESSION=connect $(WHEEL_PYTEST) $(CONNECT_TESTS)

# PYTORCH=debian or newest: only with one of them.
test-trainers: packages-for-tests build $(WHEEL_READY) ## every program of docs/COMING-FROM.md, with Debian's PyTorch and the newest one, and the table there; downloads 3.3 GB, or 1.4 if pip finds a PyTorch for CPUs
	@mkdir -p $(REPORTS)
	@rm -f $(REPORTS)/trainers-*.xml
	@status=0; for pytorch in $(or $(PYTORCH),debian newest); do $(MAKE) --no-print-directory test-trainers-$$pytorch || status=1; done; \
		launch/dev/trainer-table $(REPORTS)/trainers-*.xml && exit $$status

test-trainers-debian: $(ARRAYS)/.ready
	@PYTHONPATH=$(CURDIR)/$(ARRAYS) $(call pytest,$(WHEEL_VENV)) -rs --junitxml $(REPORTS)/trainers-debian.xml $(TRAINER_TESTS)

test-trainers-newest: $(NEWEST_READY)
	@$(call pytest,$(NEWEST_VENV)) -rs --junitxml $(REPORTS)/trainers-newest.xml $(TRAINER_TESTS)

TRAINER_TESTS := mpi-client/python/tests/test_trainers.py

$(ARRAYS)/.ready: mpi-client/python/tests/requirements-arrays.txt $(WHEEL_READY)
	@echo 'build: $(ARRAYS)'
	@rm -rf $(ARRAYS)
	@$(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --target $(ARRAYS) --requirement $<
	@touch $@

# A pytest of their own: they need another Spark.
test-python-faults: library-with-fail-points
	@$(call pytest,$(SPARK_VENV)) --junitxml $(REPORTS)/faults.xml -m '$(TESTS)' launch/tests/faults

# HDFS, YARN and two nodes, where this machine allows namespaces; a Spark of their own, too.
test-python-cluster:
	@$(call pytest,$(SPARK_VENV)) -rs --junitxml $(REPORTS)/cluster.xml -m '$(TESTS)' launch/tests/cluster
