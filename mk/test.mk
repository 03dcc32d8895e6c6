# Formats, checks and tests.

.PHONY: format lint lint-c lint-python lint-shell lint-scala lint-docs lint-prose test test-fast fast-scala fast-c fast-python test-nightly test-long \
	test-c test-fuzz test-model test-scala test-launch test-faults test-faults-short test-cluster test-cluster-short test-mpich test-kubernetes \
	test-sessions test-trainers test-trainers-debian test-trainers-newest test-arm64 test-gpu fuzz soak built-for-tests

C_FILES = $(shell git ls-files '*.c' '*.h' '*.cc')
PYTHON_FILES = $(shell git grep -lE '^\#!.*python' -- ':!*.md') $(shell git ls-files '*.py' '*.pyi')
SHELL_FILES = $(shell git grep -lE '^\#!.*(bash|/sh)' -- ':!*.md') $(shell git ls-files '*.sh')

format: $(LINT_READY) ## formats every source file
	@$(LINT)/bin/clang-format -i $(C_FILES)
	@$(LINT)/bin/ruff format --quiet $(PYTHON_FILES)
	@$(LINT)/bin/shfmt -i 4 -ci -w $(SHELL_FILES)
	@$(MAVEN) spotless:apply

# Checks that would otherwise be comments of reviewers. Each linter reads its own settings at the root.
lint: lint-c lint-python lint-shell lint-scala lint-docs lint-prose ## checks formats, likely mistakes, and the documents
	@echo 'lint: ok'

# What is compiled for several programs is checked once, and what needs a library that is not installed is skipped aloud.
lint-c: $(LINT_READY) library
	@$(PYTHON) -c 'import json; commands = json.load(open("build/mpi-client/compile_commands.json")); \
		json.dump(list({each["file"]: each for each in reversed(commands)}.values()), open("$(LINT)/compile_commands.json", "w"))'
	@$(LINT)/bin/clang-format --dry-run --Werror $(C_FILES)
	@git ls-files 'mpi-client/src/*.c' 'mpi-client/tools/*.c' 'mpi-client/examples/*.c' 'mpi-client/offload/*.c' 'mpi-client/exchange/*.c' 'mpi-client/mpi/*.c' ':!mpi-client/src/base/fail_point.c' | \
		while read -r file; do grep --quiet "/$$file\"" $(LINT)/compile_commands.json && echo "$$file" || \
			echo "lint: skipped: $$file is not compiled here" >&2; done | \
		xargs --max-procs $(JOBS) --max-args 8 $(LINT)/bin/clang-tidy --quiet -p $(LINT) 2> /dev/null
	@$(CMAKE) -S bench/c -B build/bench-c > /dev/null
	@git ls-files 'bench/c/*.c' | xargs --max-procs $(JOBS) --max-args 8 $(LINT)/bin/clang-tidy --quiet -p build/bench-c 2> /dev/null

lint-python: $(LINT_READY)
	@$(LINT)/bin/ruff format --quiet --check $(PYTHON_FILES)
	@$(LINT)/bin/ruff check --quiet $(PYTHON_FILES)
	@$(LINT)/bin/mypy
	@PYTHONPATH=mpi-client/python/src $(LINT)/bin/lint-imports --no-cache > build/lint-imports.log || { cat build/lint-imports.log >&2; exit 1; }

lint-shell: $(LINT_READY)
	@$(LINT)/bin/shfmt -i 4 -ci -d $(SHELL_FILES)
	@$(LINT)/bin/shellcheck --external-sources $(SHELL_FILES)

# Spark 3.5 has another Scala, which lacks what is new in that of the usual Spark.
lint-scala: | packages
	@$(MAVEN) spotless:check
	@$(MAKE) --no-print-directory SPARK=3.5 jar

# The help of the programs has their options. The site checks links.
lint-docs: library docs
	@.ci/check-documents

# Vale is a Go module. Without Go its check is skipped aloud. docs/PYTHON-API.md is made of docstrings, which are checked.
lint-prose:
	@if type go > /dev/null 2>&1; then \
		test -x $(LINT)/vale || { echo 'build: $(LINT)/vale'; GOBIN=$(CURDIR)/$(LINT) go install github.com/vale-cli/vale/v3/cmd/vale@v3.21.0; }; \
		$(LINT)/vale --minAlertLevel=error $$(git ls-files '*.md' '*.scala' '*.py' '*.[ch]' ':!docs/PYTHON-API.md'); \
	else echo 'lint: skipped: Vale checks documents and comments and needs Go, which is not installed' >&2; fi

# Every suite runs, also if another one fails, three at a time: a suite keeps one process busy, or waits for one. The last command counts
# and gives the verdict. The longest suites begin first.
TEST_SUITES := scala python-1 python-2 python-3 c launch faults-short cluster-short model fuzz
run_suites = $(MAKE) --no-print-directory --keep-going --jobs 3 --output-sync=recurse $(addprefix test-,$(1))
report_of = $(REPORTS)/$(1)$(if $(filter-out scala spark-3.5,$(1)),.xml)
reports_of = $(foreach suite,$(1),$(call report_of,$(suite)))

# With SINCE=COMMIT `make test` leaves out the suites, and the tests of extensions, whose folders are as in that commit.
FOLDERS := README.md bench configs docs launch mpi-client proto spark-supplier
FOLDERS_scala := docs mpi-client proto spark-supplier ':!mpi-client/python'
FOLDERS_c := README.md bench docs mpi-client proto ':!mpi-client/python'
FOLDERS_fuzz := mpi-client/src mpi-client/fuzz proto
FOLDERS_model := proto
SCALA := spark-supplier/src/main/scala/supply
PACKAGE := mpi-client/python/src/spark_supplier
FOLDERS_offload := mpi-client/offload $(SCALA)/linalg $(PACKAGE)/offload $(PACKAGE)/ml
FOLDERS_exchange := mpi-client/exchange mpi-client/mpi $(addprefix $(PACKAGE)/,exchange.py mpi.py torch_transport.py)
FOLDERS_lmdb := $(SCALA)/lmdb
# What extensions know of the core.
INTERFACES := proto mpi-client/include mpi-client/src mpi-client/python/tests $(PACKAGE)/driver $(addprefix $(SCALA)/,api block protocol source)
tests_named = $(addsuffix .py,$(addprefix mpi-client/python/tests/test_,$(1)))
TESTS_OF_offload := $(call tests_named,attach linalg linalg_estimators mllib_matrices ranks ranks_and_strangers ranks_end)
TESTS_OF_exchange := $(call tests_named,exchange exchange_failures exchange_processes device_exchange)
TESTS_OF_lmdb := $(call tests_named,supplier_in_place batches_in_place values_in_place)
is_unchanged = $(if $(SINCE),$(shell set -- Makefile mk .ci $(1); \
	git diff --quiet $(SINCE) -- "$$@" && test -z "$$(git ls-files --others --exclude-standard -- "$$@")" && echo yes))
CHANGED_SUITES = $(foreach suite,$(TEST_SUITES),$(if $(call is_unchanged,$(or $(FOLDERS_$(suite)),$(FOLDERS))),,$(suite)))
left_out = $(foreach each,offload exchange lmdb,$(if $(call is_unchanged,$(FOLDERS_$(each)) $(INTERFACES)),$(TESTS_OF_$(each))))

test: built-for-tests ## every part: C, Scala, Python, both languages together, and the model of their protocol; about 15 minutes
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	$(eval suites := $(CHANGED_SUITES))
	-@$(if $(suites),$(call run_suites,$(suites)))
	@$(if $(suites),.ci/count-tests $(call reports_of,$(suites)),echo 'test: nothing has changed')

# conftest.py and LocalSpark.scala mark what starts a Spark.
test-fast: library-with-tests package ## the tests that need no Spark and no MPI, about 2 minutes: before each commit
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	-@$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync=recurse fast-scala fast-c fast-python
	@.ci/count-tests $(call reports_of,scala c python)

fast-scala:
	@$(MAKE) --no-print-directory test-scala SUITES=-DtagsToExclude=long,spark
fast-c: C_LABELS := long|mpi
fast-c: test-c
fast-python:
	@$(WHEEL_PYTEST) -m '$(TESTS) and not slow' --junitxml $(REPORTS)/python.xml mpi-client/python/tests

# After the packages, two builds at a time: one downloads while the other compiles.
built-for-tests: | packages-for-tests
	@$(MAKE) --no-print-directory library-with-tests
	@$(MAKE) --no-print-directory --jobs 2 build $(DIGITS) $(WHEEL_READY)
	@$(MAKE) --no-print-directory $(SPARK_CLASSES)

test-faults: library-with-tests build library-with-fail-points $(DATUM) # every fault test: both sides killed and stopped at each step, about 10 minutes
	@$(call pytest,$(SPARK_VENV)) launch/tests/faults

test-cluster: packages-for-tests library-with-tests build build-every-spark $(DATUM) $(DIGITS) # every test on a real HDFS, YARN and Slurm with two nodes, about 10 minutes
	@$(call pytest,$(SPARK_VENV)) -rs launch/tests/cluster

# The conftest of launch/tests is for another Python.
test-kubernetes: packages-for-cluster build $(WHEEL_READY) # Supplier.run on a real Kubernetes with two nodes, and its failures; skipped aloud where it cannot start
	@$(call pytest,$(WHEEL_VENV)) -rs --confcutdir launch/tests/kubernetes launch/tests/kubernetes

# SESSIONS='-k local' runs only some.
test-sessions: packages-for-cluster build $(WHEEL_READY) # five programs of the pages in every kind of session, about 25 minutes
	@$(call pytest,$(WHEEL_VENV)) -rs --timeout 900 --confcutdir launch/tests/sessions $(SESSIONS) launch/tests/sessions

# Also with the jar's library of LMDB for aarch64, which needs the compiler.
test-arm64: packages-for-tests packages-for-arm64 # the C tests, the wheel and runs of Spark on aarch64, by qemu, about 40 minutes; skipped aloud where it cannot start
	@$(MAKE) --no-print-directory jars $(VENV_READY) $(DIGITS)
	@mkdir -p $(REPORTS)
	@$(call pytest,$(VENV)) -rs --timeout 3000 --confcutdir launch/tests/arm64 --junitxml $(REPORTS)/arm64.xml launch/tests/arm64

# With a Python that has the package (make python), PyTorch with CUDA, pytest, and for the rest PySpark, CuPy and JAX.
test-gpu: GPU_PYTHON ?= python3
test-gpu: # what needs a GPU, with the Python of GPU_PYTHON=python3; skipped aloud without one
	@$(GPU_PYTHON) -m pytest -q -rs -p no:cacheprovider --timeout 300 $(addprefix mpi-client/python/tests/test_device,.py _copies.py _exchange.py _run.py)

# Most inputs go to the C side, which takes a hundred times as many a second.
fuzz: packages-for-tests build $(JAZZER) # fuzzes what both sides read, with INPUTS=10000000 inputs
	@$(MAVEN) test-compile
	@mpi-client/fuzz/run --inputs $$(($(INPUTS) * 98 / 100)) 600
	@spark-supplier/src/test/fuzz/run $$(($(INPUTS) * 2 / 100))
	@echo "fuzz: ok inputs=$(INPUTS)"

JAZZER_VERSION := 0.24.0
$(JAZZER): | packages
	@$(foreach jar,jazzer jazzer-api,mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
		-Dartifact=com.code-intelligence:$(jar):$(JAZZER_VERSION) -DoutputDirectory=$(CURDIR)/$(@D) &&) touch $@

soak: packages-for-tests build library-with-fail-points $(DATUM) $(WHEEL_READY) # everything with faults at random for MINUTES=30: nothing lost, stuck or left, nothing that grows
	@$(VENV)/bin/python launch/tests/faults/soak $(MINUTES)

# The suites of `make test` and of its nightly parts.

# In a test Spark lives for seconds: a second compiler, the threads of a collector, and checks of Spark's own classes
# would take longer than they give back.
test-% nightly-%: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote

C_LABELS := long
test-c:
	@$(ALONE) ctest --test-dir build/mpi-client --parallel $(JOBS) --label-exclude '$(C_LABELS)' --output-on-failure --no-tests=error --output-junit $(CURDIR)/$(REPORTS)/c.xml

test-fuzz:
	@mpi-client/fuzz/run --junit $(REPORTS)/fuzz.xml 20

# MODEL='--kinds holds,ends' leaves out the large searches, and what tests the model itself.
MODEL := --kinds holds,ends
test-model:
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

# The Python package in an environment that has nothing of build/venv. Debian's PyTorch and mpi4py, with their numpy, come from the
# system: the PyTorch of the package index is a hundred times the size. A JVM that maps Spark's classes from an archive starts in about
# 60 % of the time. The launchers' JVMs cannot: the folder of their settings is in the class path, and archives refuse a folder with files.
WHEEL_PYTEST = SPARK_SUBMIT_OPTS="$$SPARK_SUBMIT_OPTS -XX:SharedArchiveFile=$(CURDIR)/$(SPARK_CLASSES) -Xlog:disable" $(call pytest,$(WHEEL_VENV))
# Each third module.
third = $(shell printf '%s\n' $(filter-out $(left_out),$(sort $(wildcard mpi-client/python/tests/test_*.py))) | awk 'NR % 3 == $(1) % 3')
test-python-%:
	@$(WHEEL_PYTEST) -m '$(TESTS)' --junitxml $(REPORTS)/python-$*.xml $(call third,$*)

test-launch:
	@$(call pytest,$(SPARK_VENV)) -m '$(TESTS)' --junitxml $(REPORTS)/launch.xml launch/tests/test_*.py

# A pytest of their own: they need another Spark, and where this machine allows namespaces HDFS, YARN and two nodes.
test-faults-short: library-with-fail-points
	@$(call pytest,$(SPARK_VENV)) -m '$(TESTS)' --junitxml $(REPORTS)/faults-short.xml launch/tests/faults
test-cluster-short:
	@$(call pytest,$(SPARK_VENV)) -rs -m '$(TESTS)' --junitxml $(REPORTS)/cluster-short.xml launch/tests/cluster

$(SPARK_CLASSES): mpi-client/python/tests/spark_classes.py $(WHEEL_READY)
	@echo 'build: $@'
	@rm -f $@; home=$$(echo $(CURDIR)/$(WHEEL_VENV)/lib/python3*/site-packages/pyspark); \
		SPARK_HOME=$$home PYSPARK_PYTHON=$(WHEEL_VENV)/bin/python SPARK_SUBMIT_OPTS='-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit=$@ -Xlog:disable' \
		$$home/bin/spark-submit $< > build/spark-classes.log 2>&1 || { cat build/spark-classes.log >&2; exit 1; }

# What `make test` leaves out, in parts of about ten minutes.
PARTS := address thread valgrind model links package scala spark-3.5 python-1 python-2 python-3 launch faults cluster mpich connect-1 connect-2
PART ?= $(PARTS)

test-nightly: built-for-tests ## what `make test` leaves out, or some parts of it: PART='address model', or others in mk/test.mk
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	-@$(MAKE) --no-print-directory --keep-going --jobs 1 $(addprefix nightly-,$(PART))
	@.ci/count-tests $(call reports_of,$(PART))

test-long: packages-for-long test-nightly ## all that `make test` leaves out, with Slurm and Prometheus, about two hours

# The C tests under the sanitizers and valgrind.
nightly-address nightly-thread nightly-valgrind: nightly-%:
	@mpi-client/tests/sanitized $* --junit $(REPORTS)/$*.xml

nightly-model:
	@$(MAKE) --no-print-directory test-model MODEL='--kinds large,mutation,witness'

# Whether other versions of Spark still have what the jar calls of Spark: internals change without notice.
nightly-links:
	@$(VENV)/bin/python launch/dev/check-links --junit $(REPORTS)/links.xml $(JAR)

# What installs the library, and the cases of the exchange that repeat others without neighbours.
nightly-package:
	@$(ALONE) ctest --test-dir build/mpi-client --parallel $(JOBS) --label-regex long --output-on-failure --no-tests=error --output-junit $(CURDIR)/$(REPORTS)/package.xml

nightly-scala:
	@$(MAKE) --no-print-directory test-scala SUITES=-DtagsToInclude=long

# The other Spark. Everything is compiled; what meets Spark's and Scala's own classes is run. In front of that of the environment stands
# the other PySpark.
nightly-spark-3.5: build-every-spark
	@mkdir -p build/spark-3.5/python
	-@$(MAKE) --no-print-directory SPARK=3.5 test-scala SCALA_REPORTS=$(REPORTS)/spark-3.5 \
		SUITES='-Dsuites=supply.run.SupplyJobSuite,supply.run.ResumeSuite,supply.run.PlacedJobSuite -DwildcardSuites=supply.core,supply.linalg,supply.plan,supply.lmdb,supply.rows'
	@cd build/spark-3.5/python && for package in pyspark py4j; do ln -sfn ../venv/lib/python3*/site-packages/$$package; done
	-@PYTHONPATH=$(CURDIR)/build/spark-3.5/python SUPPLY_JAR=$(CURDIR)/build/spark-3.5/target/spark-supplier.jar $(WHEEL_PYTEST) -m 'not long' --junitxml $(REPORTS)/spark-3.5/types.xml mpi-client/python/tests/test_types.py
	-@$(WHEEL_PYTEST) -m spark_3_5 --junitxml $(REPORTS)/spark-3.5/python.xml mpi-client/python/tests
	@$(call pytest,$(VENV)) -m spark_3_5 --junitxml $(REPORTS)/spark-3.5/launch.xml launch/tests/test_*.py

nightly-python-%:
	@$(MAKE) --no-print-directory test-python-$* TESTS=long

nightly-launch: $(DOCS_READY)
	@$(MAKE) --no-print-directory test-launch TESTS=long

nightly-faults: library-with-fail-points
	@$(call pytest,$(SPARK_VENV)) -m long --junitxml $(REPORTS)/faults.xml launch/tests/faults

nightly-cluster: build-every-spark
	@$(call pytest,$(SPARK_VENV)) -rs -m 'long or spark_3_5' --junitxml $(REPORTS)/cluster.xml launch/tests/cluster

# The ranks with MPICH instead of Open MPI; skipped aloud where it is not installed.
nightly-mpich: library-with-mpich
	@$(call pytest,$(SPARK_VENV)) -rs --junitxml $(REPORTS)/mpich.xml launch/tests/mpich

# The tests of spark_supplier once more, in sessions of Spark Connect.
CONNECT_TESTS := $(addprefix mpi-client/python/tests/test_,attach.py estimator.py hub.py linalg.py linalg_estimators.py ranks.py ranks_and_strangers.py ranks_end.py restarts.py share.py supplier.py \
	supplier_callers.py supplier_causes.py supplier_cut_files.py supplier_inputs.py supplier_limits.py supplier_mpirun.py supplier_results.py supplier_rows.py warm_ranks.py)
nightly-trainers-debian nightly-trainers-newest: nightly-%: test-%
nightly-connect-%:
	@SUPPLY_TEST_SESSION=connect $(WHEEL_PYTEST) -m '$(TESTS)' --junitxml $(REPORTS)/connect-$*.xml $(shell echo $(CONNECT_TESTS) | tr ' ' '\n' | awk 'NR % 2 == $* % 2')

# PYTORCH=debian or newest: only with one of them.
test-trainers: packages-for-tests build $(WHEEL_READY) # every program of docs/COMING-FROM.md, with Debian's PyTorch and the newest one; downloads 3.3 GB, or 1.4 if pip finds a PyTorch for CPUs
	@mkdir -p $(REPORTS)
	@rm -f $(REPORTS)/trainers-*.xml
	@status=0; for pytorch in $(or $(PYTORCH),debian newest); do $(MAKE) --no-print-directory test-trainers-$$pytorch || status=1; done; exit $$status

test-trainers-debian: $(ARRAYS)/.ready
	@PYTHONPATH=$(CURDIR)/$(ARRAYS) $(WHEEL_PYTEST) -rs --junitxml $(REPORTS)/trainers-debian.xml $(TRAINER_TESTS)

test-trainers-newest: $(NEWEST_READY)
	@$(call pytest,$(NEWEST_VENV)) -rs --junitxml $(REPORTS)/trainers-newest.xml $(TRAINER_TESTS)

TRAINER_TESTS := mpi-client/python/tests/test_trainers.py

$(ARRAYS)/.ready: mpi-client/python/tests/requirements-arrays.txt $(WHEEL_READY)
	@echo 'build: $(ARRAYS)'
	@rm -rf $(ARRAYS)
	@$(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --target $(ARRAYS) --requirement $<
	@touch $@
