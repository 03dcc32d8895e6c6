# The menu: `make` alone prints it. Everything made lies in build/ and spark-supplier/target/.

PYTHON ?= /usr/bin/python3
JOBS ?= $(shell nproc)
RANKS ?= 2
EPOCHS ?= 10
MINUTES ?= 30

# The version stands once, in the pom; the pyspark wheel has to be the same.
SPARK_VERSION := $(shell sed -n 's|.*<spark.version>\(.*\)</spark.version>.*|\1|p' spark-supplier/pom.xml)

VENV := build/venv
VENV_READY := $(VENV)/.ready-$(SPARK_VERSION)
DATUM := build/python/datum_pb2.py
DIGITS := build/digits
JAR := spark-supplier/target/spark-supplier.jar
JAR_SOURCES := spark-supplier/pom.xml $(shell find spark-supplier/src/main bench/scala proto -type f)
REPORTS := build/reports

# CMake itself knows what is stale. The make that it starts must not meet this one's flags.
CMAKE := env -u MAKEFLAGS -u MFLAGS cmake
# Debian's Maven writes escape sequences into logs, too, where it is not told not to.
MAVEN := env MAVEN_OPTS="$(MAVEN_OPTS) -Djansi.noreset=true" mvn --batch-mode --quiet -Dstyle.color=never --file spark-supplier/pom.xml

.DEFAULT_GOAL := menu
.DELETE_ON_ERROR:
.PHONY: menu run test build bench bench-quick bench-cycle bench-programs reference packages packages-for-tests clean distclean \
	library library-with-fail-points test-c test-sanitized test-fuzz test-model test-scala test-python test-python-faults test-faults test-sanitizers soak

menu:
	@echo 'Targets:'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile
	@echo 'Settings: RANKS=$(RANKS) EPOCHS=$(EPOCHS) (of run), JOBS=$(JOBS), PYTHON=$(PYTHON)'

run: build $(DIGITS) ## the main job: Spark feeds handwritten digits to MPI ranks that train on them
	@RANKS=$(RANKS) EPOCHS=$(EPOCHS) launch/run-digits

# Every suite runs, also where an earlier one fails; the last command counts and gives the verdict.
test: packages-for-tests build $(DIGITS) ## every test: C, Scala, Python, both languages together, and the model of their protocol
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	-@$(MAKE) --no-print-directory test-c
	-@$(MAKE) --no-print-directory test-sanitized
	-@$(MAKE) --no-print-directory test-fuzz
	-@$(MAKE) --no-print-directory test-model
	-@$(MAKE) --no-print-directory test-scala
	-@$(MAKE) --no-print-directory test-python
	-@$(MAKE) --no-print-directory test-python-faults
	@.ci/count-tests $(REPORTS)/ctest.xml $(REPORTS)/sanitized.xml $(REPORTS)/fuzz.xml $(REPORTS)/model.xml $(REPORTS)/scala $(REPORTS)/pytest.xml $(REPORTS)/faults.xml

test-faults: build library-with-fail-points $(DATUM) ## every fault test: both sides killed and stopped at each step, about 10 minutes
	@$(VENV)/bin/python -m pytest -q -p no:cacheprovider launch/tests/faults

test-sanitizers: packages-for-tests ## the C tests under the address, undefined behaviour and thread sanitizers and valgrind, about 10 minutes
	@mpi-client/tests/sanitized

soak: build library-with-fail-points $(DATUM) ## full speed with faults at random for MINUTES=30: nothing lost, nothing that grows
	@$(VENV)/bin/python launch/tests/faults/soak.py $(MINUTES)

build: library $(JAR) $(VENV_READY) ## libsupply and its programs, the Supplier's jar, the Python environment

bench: bench-programs ## every benchmark, about 10 minutes: build/bench/report.md, summary.json (flags: BENCH='--floor …')
	@bench/run $(BENCH)

bench-quick: bench-programs ## the same with less data and fewer rounds, under 2 minutes
	@bench/run --quick $(BENCH)

bench-cycle: bench-programs ## the cycle benchmark alone: GB/s from Spark's memory to a rank, against a bare copy
	@bench/cycle $(BENCH)

bench-programs: $(JAR) $(VENV_READY) $(DATUM)
	@echo 'build: the programs of bench/'
	@mkdir -p build
	@{ $(CMAKE) -S bench/c -B build/bench-c && $(CMAKE) --build build/bench-c --parallel $(JOBS); } > build/bench-c.log 2>&1 \
		|| { cat build/bench-c.log >&2; exit 1; }

reference: $(JAR) $(VENV_READY) ## docs/OPTIONS.md, from the declarations of the Supplier's options
	@java -cp "$(JAR):$$(echo $(VENV)/lib/python3*/site-packages/pyspark/jars)/*" supply.OptionsReference docs/OPTIONS.md

packages: ## the Debian packages that are missing
	@PYTHON=$(PYTHON) launch/install-packages

packages-for-tests:
	@PYTHON=$(PYTHON) launch/install-packages --for-tests

clean: ## removes what was built, keeps the Python environment
	rm -rf spark-supplier/target $(filter-out $(VENV),$(wildcard build/*))

distclean: ## removes everything that was made
	rm -rf spark-supplier/target build

library: | packages
	@echo 'build: libsupply'
	@mkdir -p build
	@{ $(CMAKE) -S mpi-client -B build/mpi-client -DCMAKE_BUILD_TYPE=Release && \
		$(CMAKE) --build build/mpi-client --parallel $(JOBS); } > build/mpi-client.log 2>&1 \
		|| { cat build/mpi-client.log >&2; exit 1; }

library-with-fail-points: | packages
	@mkdir -p build
	@{ $(CMAKE) -S mpi-client -B build/mpi-client-faults -DCMAKE_BUILD_TYPE=Release -DSUPPLY_FAIL_POINTS=ON \
		-DSUPPLY_BUILD_TESTS=OFF -DSUPPLY_BUILD_EXAMPLES=OFF && \
		$(CMAKE) --build build/mpi-client-faults --parallel $(JOBS); } > build/mpi-client-faults.log 2>&1 \
		|| { cat build/mpi-client-faults.log >&2; exit 1; }

$(JAR): $(JAR_SOURCES) | packages
	@echo 'build: $@'
	@$(MAVEN) package -Dmaven.test.skip=true -DskipTests
	@touch $@

$(VENV_READY): configs/requirements.txt | packages
	@echo 'build: $(VENV) with Spark $(SPARK_VERSION)'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement configs/requirements.txt
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --use-pep517 --no-build-isolation pyspark==$(SPARK_VERSION)
	@touch $@

$(DATUM): proto/datum.proto $(VENV_READY)
	@mkdir -p $(@D)
	@$(VENV)/bin/python -m grpc_tools.protoc --proto_path=proto --python_out=$(@D) proto/datum.proto

$(DIGITS): launch/make-digits-lmdb $(DATUM)
	@echo 'data: $@'
	@rm -rf $@ && launch/make-digits-lmdb $@

test-c:
	@ctest --test-dir build/mpi-client --output-on-failure --no-tests=error --output-junit $(CURDIR)/$(REPORTS)/ctest.xml

# The address and undefined behaviour sanitizers alone: `make test-sanitizers` takes its time.
test-sanitized:
	@mpi-client/tests/sanitized --junit $(REPORTS)/sanitized.xml address

test-fuzz:
	@mpi-client/fuzz/run --junit $(REPORTS)/fuzz.xml 45

test-model:
	@JOBS=$(JOBS) proto/model/check --junit $(REPORTS)/model.xml

test-scala:
	@$(MAVEN) test; status=$$?; cp -r spark-supplier/target/surefire-reports $(REPORTS)/scala && exit $$status

test-python:
	@$(VENV)/bin/python -m pytest -q -p no:cacheprovider --junitxml $(REPORTS)/pytest.xml --ignore launch/tests/faults launch/tests

# A pytest of their own: they need another Spark.
test-python-faults: library-with-fail-points
	@$(VENV)/bin/python -m pytest -q -p no:cacheprovider --junitxml $(REPORTS)/faults.xml -m 'not long' launch/tests/faults
