# The menu: `make` alone prints it. Everything made lies in build/ and spark-supplier/target/.

PYTHON ?= /usr/bin/python3
JOBS ?= $(shell nproc)
# In front of the others: a variable that has a value keeps it.
run-cluster: RANKS ?= 4
run-cluster: EPOCHS ?= 3
RANKS ?= 2
EPOCHS ?= 10
MINUTES ?= 30
INPUTS ?= 10000000
# Which tests of Python run: those that are marked `long`, or the others.
TESTS := not long
# pytest of an environment. A test that hangs fails after ten minutes. After that only the suite has a limit, of an hour: pytest drops
# its own when a test has failed.
pytest = timeout --foreground --kill-after=30 3600 $(1)/bin/python -m pytest -q -p no:cacheprovider --timeout 600

# The Spark to build for and to run with. The versions stand once, in the pom; the pyspark wheel must be the same.
USUAL_SPARK := 4.1
SPARK ?= $(USUAL_SPARK)
spark_version = $(shell sed -n '/<id>spark-$(1)</,/<\/profile>/s|.*<spark.version>\(.*\)</spark.version>.*|\1|p' spark-supplier/pom.xml)
SPARK_VERSION := $(call spark_version,$(SPARK))
ifeq ($(SPARK_VERSION),)
$(error SPARK=$(SPARK): there is only $(shell sed -n 's|.*<id>spark-\(.*\)</id>.*|\1|p' spark-supplier/pom.xml) in spark-supplier/pom.xml)
endif

VENV := build/venv
VENV_READY := $(VENV)/.ready-$(call spark_version,$(USUAL_SPARK))
ifeq ($(SPARK),$(USUAL_SPARK))
TARGET := spark-supplier/target
SPARK_VENV := $(VENV)
SPARK_READY := $(VENV_READY)
else
# A build folder of its own. The scripts of launch/ find the jar by SPARK_HOME.
TARGET := build/spark-$(SPARK)/target
SPARK_VENV := build/spark-$(SPARK)/venv
SPARK_READY := $(SPARK_VENV)/.ready-$(SPARK_VERSION)
export SPARK_HOME := $(CURDIR)/build/spark-$(SPARK)/home
endif
DATUM := build/python/datum_pb2.py
DIGITS := build/digits
JAR := $(TARGET)/spark-supplier.jar
JAR_SOURCES := spark-supplier/pom.xml $(shell find spark-supplier/src/main proto -type f)
BENCH_JAR := $(TARGET)/spark-supplier-bench.jar
REPORTS := build/reports
DOCS := build/docs
DOCS_VENV := build/docs-venv
DOCS_READY := $(DOCS_VENV)/.ready
LINT := build/lint
LINT_READY := $(LINT)/.ready
WHEEL_VENV := build/wheel-venv
WHEEL_READY := $(WHEEL_VENV)/.ready
WHEEL_ENVIRONMENT := $(WHEEL_VENV)/.environment
SPARK_CLASSES := build/spark-classes.jsa
JAZZER := build/jazzer/.ready
# JAX and TensorFlow.
ARRAYS := build/arrays
WHEEL_SOURCES := pyproject.toml LICENSE $(shell find mpi-client proto/layout.tsv configs/spark launch/supply_launch -type f -not -path '*/tests/*' -not -name '*.pyc')
RELEASE := build/release
VERSION = $(shell sed -n 's/^\#define SUPPLY_VERSION_[A-Z]* //p' mpi-client/include/supply.h | paste -sd.)
RELEASE_VENV := build/release-venv
RELEASE_READY := $(RELEASE_VENV)/.ready
RELEASE_BOMS := spark-supplier/target/supplier.cdx.json build/spark-3.5/target/supplier.cdx.json

# CMake itself knows what is stale. The make that it starts must not meet this one's flags.
CMAKE := env -u MAKEFLAGS -u MFLAGS cmake
CONFIGURE := $(CMAKE) -S mpi-client -DSUPPLY_WARNINGS_AS_ERRORS=ON
# Debian's Maven colours its logs unless it gets these options.
MAVEN_OF := env MAVEN_OPTS="$(MAVEN_OPTS) -Djansi.noreset=true" mvn --batch-mode --quiet -Dstyle.color=never \
	--file spark-supplier/pom.xml --activate-profiles
MAVEN := $(MAVEN_OF) spark-$(SPARK)

.DEFAULT_GOAL := menu
.DELETE_ON_ERROR:
.PHONY: menu audit format python docs release test-release test-matrix wheel recipes archives maven jars jar packages-for-release lint lint-c lint-python lint-shell lint-scala lint-prose run run-offload run-exchange test build spark build-every-spark bench bench-quick bench-cycle bench-programs reference packages \
	packages-for-tests packages-for-archives packages-for-cluster packages-for-matrix packages-for-wheel packages-for-python packages-for-bench packages-for-slurm packages-offload clean distclean stopped-clusters library library-with-tests library-with-fail-points test-c test-long test-fuzz test-model test-scala \
	test-scala-3.5 test-python test-wheel test-package test-estimators test-programs test-trainers test-python-faults test-faults test-sanitizers fuzz soak run-cluster test-python-cluster test-cluster \
	library-with-mpich test-mpich built-for-tests test-ranks-side test-spark-side

menu:
	@echo 'Targets:'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile
	@echo 'Settings: SPARK=$(SPARK) (or 3.5), RANKS=$(RANKS) EPOCHS=$(EPOCHS) (of run), JOBS=$(JOBS), PYTHON=$(PYTHON)'

run: build $(DIGITS) ## the main job: Spark feeds handwritten digits to MPI ranks that train on them
	@RANKS=$(RANKS) EPOCHS=$(EPOCHS) launch/dev/run-digits

run-offload: python ## five routines of MPI ranks against MLlib's, on a DataFrame (packages-offload installs what they need)
	@launch/dev/run-offload

run-exchange: python bench-programs ## pairs grouped and sorted: Spark's own shuffle against ranks that exchange them over MPI
	@launch/dev/run-exchange

run-cluster: packages-for-cluster build $(DIGITS) ## the same on a real HDFS and YARN, on two nodes of this machine
	@RANKS=$(RANKS) EPOCHS=$(EPOCHS) launch/dev/run-cluster

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

# What is compiled for several programs is checked once.
lint-c: $(LINT_READY) library
	@$(PYTHON) -c 'import json; commands = json.load(open("build/mpi-client/compile_commands.json")); \
		json.dump(list({each["file"]: each for each in reversed(commands)}.values()), open("$(LINT)/compile_commands.json", "w"))'
	@$(LINT)/bin/clang-format --dry-run --Werror $(C_FILES)
	@git ls-files 'mpi-client/src/*.c' 'mpi-client/tools/*.c' 'mpi-client/examples/*.c' 'mpi-client/server/*.c' 'mpi-client/exchange/*.c' 'mpi-client/remote/*.c' 'mpi-client/mpi/*.c' ':!mpi-client/src/base/fail_point.c' | \
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

# Vale is a Go module. Without Go its check is skipped aloud.
lint-prose:
	@if type go > /dev/null 2>&1; then \
		test -x $(LINT)/vale || { echo 'build: $(LINT)/vale'; GOBIN=$(CURDIR)/$(LINT) go install github.com/vale-cli/vale/v3/cmd/vale@v3.21.0; }; \
		$(LINT)/vale --minAlertLevel=error $$(git ls-files '*.md' '*.scala' '*.py' '*.[ch]'); \
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
	@.ci/count-tests $(addprefix $(REPORTS)/,ctest.xml fuzz.xml model.xml scala pytest.xml package.xml estimators.xml programs.xml faults.xml cluster.xml mpich.xml)

test-long: packages-for-slurm built-for-tests ## what `make test` leaves out: long tests, the sanitizers, the whole model, suites with the other Spark, about 40 minutes
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	-@$(MAKE) --no-print-directory test-sanitizers
	-@$(MAKE) --no-print-directory test-model MODEL='--kinds large,mutation,witness'
	-@$(MAKE) --no-print-directory test-scala SUITES=-DtagsToInclude=long
	-@$(MAKE) --no-print-directory test-scala-3.5
	-@$(MAKE) --no-print-directory --keep-going TESTS=long test-python test-package test-estimators test-programs test-python-faults test-python-cluster
	@.ci/count-tests $(addprefix $(REPORTS)/,sanitized.xml model.xml scala scala-3.5 pytest.xml package.xml estimators.xml programs.xml faults.xml cluster.xml)

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

test-mpich: packages-for-tests build library-with-mpich $(DIGITS) ## the ranks with MPICH instead of Open MPI; skipped aloud where it is not installed
	@mkdir -p $(REPORTS)
	@$(call pytest,$(SPARK_VENV)) -rs --junitxml $(REPORTS)/mpich.xml launch/tests/mpich

test-sanitizers: packages-for-tests ## the C tests under the address, undefined behaviour and thread sanitizers and valgrind, about 10 minutes
	@mkdir -p $(REPORTS)
	@mpi-client/tests/sanitized --junit $(REPORTS)/sanitized.xml

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

build: library spark ## libsupply and its programs, the Supplier's jar, the Python environment

python: build $(WHEEL_READY) | packages-for-python ## the Python package with PySpark and PyTorch, in build/wheel-venv

# The Spark side alone.
spark: $(JAR) $(SPARK_READY)

build-every-spark: | build
	@$(MAKE) --no-print-directory SPARK=4.1 spark
	@$(MAKE) --no-print-directory SPARK=3.5 spark

bench: packages-for-bench bench-programs ## every benchmark, more than an hour: build/bench/report.md, summary.json (flags: BENCH='--floor …')
	@bench/run $(BENCH)

bench-quick: bench-programs ## the same figures with half of the data, fewer rounds and one pair, without the longest cases, about 3 minutes
	@bench/run --quick $(BENCH)

bench-cycle: bench-programs ## the cycle benchmark alone: GB/s from Spark's memory to a rank, against a bare copy
	@bench/cycle $(BENCH)

bench-programs: packages-for-tests library $(JAR) $(BENCH_JAR) $(VENV_READY) $(WHEEL_READY) $(DATUM)
	@echo 'build: the programs of bench/'
	@mkdir -p build
	@{ $(CMAKE) -S bench/c -B build/bench-c && $(CMAKE) --build build/bench-c --parallel $(JOBS); } > build/bench-c.log 2>&1 \
		|| { cat build/bench-c.log >&2; exit 1; }
	@grep '^skipped:' build/bench-c.log >&2 || true

reference: $(JAR) $(SPARK_READY) $(WHEEL_READY) ## docs/OPTIONS.md and docs/PYTHON-API.md, from the declarations of options and of Python's names
	@java -cp "$(JAR):$$(echo $(SPARK_VENV)/lib/python3*/site-packages/pyspark/jars)/*" supply.cli.OptionsReference docs/OPTIONS.md
	@$(WHEEL_VENV)/bin/python launch/dev/python_api.py docs/PYTHON-API.md

# With --quiet, MkDocs would not count warnings. The theme would announce its own end (docs/design/packaging.md).
docs: $(DOCS_READY) ## the documentation site, with its links checked, in build/docs (DOCS_REF=v0.1.0: links to sources lead to that tag)
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --config-file configs/docs/mkdocs.yml > build/docs.log 2>&1 \
		|| { cat build/docs.log >&2; exit 1; }
	@echo "docs: ok, $(DOCS)/index.html"

# Every record is read with PyYAML, which the documentation's environment has.
audit: $(DOCS_READY) ## known vulnerabilities of what is pinned, from databases that you have cloned: ADVISORIES='FOLDER…' (docs/DEPENDENCIES.md)
	@$(DOCS_VENV)/bin/python launch/dev/audit $(ADVISORIES)

packages: ## the Debian packages that are missing
	@PYTHON=$(PYTHON) launch/dev/install-packages

packages-for-tests packages-for-cluster packages-for-wheel packages-for-archives packages-for-python packages-for-release packages-for-matrix packages-for-bench packages-for-slurm: packages-for-%:
	@PYTHON=$(PYTHON) launch/dev/install-packages --for-$*

packages-offload: ## the Debian packages of libsupply_linalg, which supply-server loads: OpenBLAS and SLEPc, about 100
	@PYTHON=$(PYTHON) launch/dev/install-packages --for-offload

clean: stopped-clusters ## removes what was built, except build/venv and the Sparks; stops a mini-cluster
	rm -rf spark-supplier/target $(filter-out $(VENV) $(wildcard build/spark-[0-9]*),$(wildcard build/*)) $(wildcard build/spark-[0-9]*/target)

distclean: stopped-clusters ## removes everything that was made; stops a mini-cluster
	rm -rf spark-supplier/target build

# Without its state file, the cluster's processes, mounts and bridge could not be found any more.
stopped-clusters:
	@for state in $(wildcard build/*/cluster); do launch/dev/mini-cluster stop --folder "$$(dirname $$state)" || exit; done

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

# Debian's names: there both MPIs can be installed, and Open MPI is the one that is called mpirun.
library-with-mpich: | packages
	@mkdir -p build
	@! type mpicc.mpich mpiexec.mpich > /dev/null 2>&1 || \
		{ $(CONFIGURE) -B build/mpi-client-mpich -DCMAKE_BUILD_TYPE=Release -DMPI_C_COMPILER=mpicc.mpich -DMPIRUN=mpiexec.mpich && \
		$(CMAKE) --build build/mpi-client-mpich --target mpi_test --parallel $(JOBS); } > build/mpi-client-mpich.log 2>&1 \
		|| { cat build/mpi-client-mpich.log >&2; exit 1; }

# Any warning about the product is an error. On a new machine Zinc compiles its own bridge and warns about that: into the log.
$(JAR): $(JAR_SOURCES) | packages
	@echo 'build: $@ (some minutes; log: build/spark-supplier.log)'
	@mkdir -p build
	@$(MAVEN) package -Dmaven.test.skip=true -DskipTests > build/spark-supplier.log 2>&1 || { cat build/spark-supplier.log >&2; exit 1; }
	@touch $@

# The Spark side of bench/ is compiled with the tests, and is no part of the product's jar.
$(BENCH_JAR): $(JAR) $(shell find spark-supplier/src/bench -type f)
	@echo 'build: $@'
	@$(MAVEN) test-compile jar:test-jar@bench > build/spark-supplier-bench.log 2>&1 || { cat build/spark-supplier-bench.log >&2; exit 1; }
	@touch $@

$(VENV_READY): configs/requirements.txt | packages
	@echo 'build: $(VENV) with Spark $(call spark_version,$(USUAL_SPARK))'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement configs/requirements.txt
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

$(LINT_READY): configs/lint/requirements.txt
$(DOCS_READY): configs/docs/requirements.txt
$(RELEASE_READY): configs/release-requirements.txt
$(LINT_READY) $(DOCS_READY) $(RELEASE_READY): | packages
	@echo 'build: $(@D)'
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# What a user installs: docs/design/packaging.md. Nothing is published.
release: $(RELEASE_READY) | packages-for-release ## every artifact of a release, with checksums and an SBOM, in build/release; tests each one
	@rm -rf $(RELEASE)
	@$(MAKE) --no-print-directory maven
	@$(MAKE) --no-print-directory wheel archives
	@launch/dev/write-recipes $(RELEASE)
	@for folder in maven spack conda; do \
		tar --create --gzip --sort=name --owner=0 --group=0 --directory $(RELEASE) --file $(RELEASE)/spark-supplier-$(VERSION)-$$folder.tar.gz $$folder || exit 1; \
	done
	@launch/dev/write-sbom $(RELEASE) $(RELEASE_BOMS)
	@$(MAKE) --no-print-directory test-release
	@cd $(RELEASE) && sha256sum --quiet --check SHA256SUMS && echo "release: ok, $$(wc -l < SHA256SUMS) files in $(RELEASE)"

test-release: $(DIGITS) | packages-for-release ## installs each artifact of build/release into something empty, and uses it there
	@$(MAKE) --no-print-directory SPARK=4.1 spark
	@$(MAKE) --no-print-directory SPARK=3.5 spark
	@mkdir -p $(REPORTS)
	@$(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider --junitxml $(REPORTS)/release.xml launch/tests/release

# Downloads and reports stay in build/matrix. CELLS='-k MPI' repeats only some cells.
test-matrix: $(DIGITS) | packages-for-matrix ## build/release with other Sparks, Pythons, MPIs and systems, about 30 minutes: the table of docs/INSTALL.md (10 GB of downloads)
	@$(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider -o junit_family=xunit1 --junitxml build/matrix/reports/$$(date +%s).xml $(CELLS) launch/tests/matrix; \
		status=$$?; launch/tests/matrix/publish.py && exit $$status

wheel: jars $(RELEASE_READY) | packages-for-wheel ## of these the Python package: the sdist, and a wheel for each Python that is here
	@launch/dev/build-wheels $(RELEASE)

recipes: wheel ## of these the recipes of Spack and conda, and the sdist that they build
	@launch/dev/write-recipes $(RELEASE)

archives: jars | packages-for-archives ## of these the tarball and the Debian packages
	@echo 'build: the tarball and the Debian packages'
	@env -u MAKEFLAGS -u MFLAGS JOBS=$(JOBS) launch/dev/build-archives $(RELEASE)

maven: maven-4.1 maven-3.5 ## of these a Maven repository with the jars of every Spark, their sources and documentation

maven-3.5: maven-4.1

jars:
	@$(MAKE) --no-print-directory SPARK=4.1 jar
	@$(MAKE) --no-print-directory SPARK=3.5 jar

jar: $(JAR)

maven-%: | packages
	@echo 'build: $(RELEASE)/maven for Spark $*'
	@mkdir -p $(RELEASE)
	@$(MAVEN_OF) spark-$*,release deploy -DskipTests -Dmaven.test.skip=true -DaltDeploymentRepository=release::file:$(CURDIR)/$(RELEASE)/maven \
		> build/maven-$*.log 2>&1 || { cat build/maven-$*.log >&2; exit 1; }

$(DATUM): proto/datum.proto $(VENV_READY)
	@mkdir -p $(@D)
	@$(VENV)/bin/python -m grpc_tools.protoc --proto_path=proto --python_out=$(@D) proto/datum.proto

$(DIGITS): launch/dev/make-digits-lmdb $(DATUM)
	@echo 'data: $@'
	@rm -rf $@ && launch/dev/make-digits-lmdb $@

# In a test Spark lives for seconds: its second compiler would take longer than it gives back.
test-python test-wheel test-package test-estimators test-trainers test-mpich test-python-faults test-faults test-python-cluster test-cluster: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1

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
		SUITES='-Dsuites=supply.driver.SupplyJobSuite,supply.driver.ResumeSuite,supply.driver.PlacedJobSuite -DwildcardSuites=supply.core,supply.linalg,supply.plan,supply.sources'

test-python:
	@$(call pytest,$(SPARK_VENV)) -m '$(TESTS)' --junitxml $(REPORTS)/pytest.xml --ignore launch/tests/faults --ignore launch/tests/cluster --ignore launch/tests/matrix --ignore launch/tests/mpich --ignore launch/tests/release launch/tests

# The Python package in an environment that has nothing of build/venv. Debian's PyTorch and mpi4py, with their numpy, come
# from the system: the PyTorch of the package index is a hundred times the size.
test-wheel: packages-for-tests build $(WHEEL_READY) $(SPARK_CLASSES) $(DATUM) $(DIGITS) ## the Python package: builds and installs its wheel, and tests it with Spark and mpirun
	@$(WHEEL_PYTEST) mpi-client/python/tests

# Together they are test-wheel without its long tests: so the rows of `test` take about as long as each other.
WHEEL_PYTEST = $(call pytest,$(WHEEL_VENV))
ESTIMATOR_TESTS := $(addprefix mpi-client/python/tests/,test_estimator.py test_linalg.py test_linalg_estimators.py)
PROGRAM_TESTS := $(addprefix mpi-client/python/tests/,test_frames.py test_gpus.py test_notebook.py test_partitions.py test_quiet_runs.py test_supplier_causes.py \
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

# The wheel that users get, with the launchers and the jars that are there, but compiled for this machine alone.
$(WHEEL_READY): $(WHEEL_SOURCES) $(JAR) $(WHEEL_ENVIRONMENT)
	@echo 'build: the wheel of the Python package'
	@env -u MAKEFLAGS -u MFLAGS $(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
		--no-build-isolation --config-settings build-dir=build/wheel .
	@touch $@

test-trainers: packages-for-tests build $(WHEEL_READY) $(ARRAYS)/.ready ## docs/TRAINERS.md with every trainer, also those whose packages are large (350 MB)
	@PYTHONPATH=$(CURDIR)/$(ARRAYS) $(call pytest,$(WHEEL_VENV)) -rs mpi-client/python/tests/test_trainers.py

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
