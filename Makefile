# The menu: `make` alone prints the targets with a text after ##. Everything made lies in build/ and spark-supplier/target/. mk/ has the rules.

PYTHON ?= /usr/bin/python3
JOBS ?= $(shell nproc)
# In front of the others: a variable that has a value keeps it.
run-cluster: RANKS ?= 4
run-cluster: EPOCHS ?= 3
run-kubernetes: RANKS ?= 4
run-kubernetes: EPOCHS ?= 3
RANKS ?= 2
EPOCHS ?= 10
MINUTES ?= 30
INPUTS ?= 10000000
# Which tests of Python run.
TESTS := not long and not spark_3_5
# pytest of an environment. A test that hangs fails after ten minutes. After that only the suite has a limit, of an hour: pytest drops
# its own when a test has failed. It ends by SIGINT then, for which pytest removes what its fixtures have made.
pytest = $(ALONE) timeout --foreground --signal=INT --kill-after=30 3600 $(1)/bin/python -m pytest -q -p no:cacheprovider --timeout 600

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
# `make python` has fewer.
PACKAGES_FOR_JAR := packages
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
# Trainers whose packages are large.
ARRAYS := build/arrays
# The newest PyTorch, with the trainers of its time.
NEWEST_VENV := build/newest-venv
NEWEST_READY := $(NEWEST_VENV)/.ready
# Other loaders of data, for bench/one_call.
LOADERS_VENV := build/loaders-venv
LOADERS_READY := $(LOADERS_VENV)/.ready
WHEEL_SOURCES := pyproject.toml LICENSE $(shell find mpi-client $(wildcard proto/*.tsv) proto/make_tables.py configs/spark -type f -not -path '*/tests/*' -not -name '*.pyc')
RELEASE := build/release
VERSION = $(shell sed -n 's/^\#define SUPPLY_VERSION_[A-Z]* //p' mpi-client/include/supply.h | paste -sd.)
RELEASE_VENV := build/release-venv
RELEASE_READY := $(RELEASE_VENV)/.ready
RELEASE_BOMS := spark-supplier/target/supplier.cdx.json build/spark-3.5/target/supplier.cdx.json

# CMake itself knows what is stale. The make that it, or a test, starts must not meet this one's flags.
ALONE := env -u MAKEFLAGS -u MFLAGS
CMAKE := $(ALONE) cmake
CONFIGURE := $(CMAKE) -S mpi-client -DSUPPLY_WARNINGS_AS_ERRORS=ON
# Debian's Maven colours its logs unless it gets these options.
MAVEN_OF := env MAVEN_OPTS="$(MAVEN_OPTS) -Djansi.noreset=true" mvn --batch-mode --quiet -Dstyle.color=never \
	--file spark-supplier/pom.xml --activate-profiles
MAVEN := $(MAVEN_OF) spark-$(SPARK)
# Into the jar of every Spark.
LMDB_LIBRARY = launch/dev/build-lmdb-library $(shell sed -n 's|.*<lmdbjni.version>\(.*\)</lmdbjni.version>.*|\1|p' spark-supplier/pom.xml) build/natives

.DEFAULT_GOAL := menu
.DELETE_ON_ERROR:
.PHONY: menu run run-offload run-exchange clean distclean stopped-clusters run-cluster run-kubernetes

menu:
	@echo 'Targets (the files in mk/ have others):'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'Settings: SPARK=$(SPARK) (or 3.5), RANKS=$(RANKS) EPOCHS=$(EPOCHS) (of run), JOBS=$(JOBS), PYTHON=$(PYTHON)'

run: build $(DIGITS) ## the main job: Spark feeds handwritten digits to MPI ranks that train on them
	@RANKS=$(RANKS) EPOCHS=$(EPOCHS) launch/dev/run-digits

run-offload: build $(WHEEL_READY) | packages-for-python # five routines of MPI ranks against MLlib's, on a DataFrame (packages-offload installs what they need)
	@launch/dev/run-compared offload

run-exchange: build $(WHEEL_READY) bench-programs # pairs grouped and sorted: Spark's own shuffle against ranks that exchange them over MPI
	@launch/dev/run-compared exchange

run-cluster: packages-for-cluster build $(DIGITS) # the same on a real HDFS and YARN, on two nodes of this machine
	@RANKS=$(RANKS) EPOCHS=$(EPOCHS) launch/dev/run-cluster

run-kubernetes: packages-for-cluster build $(WHEEL_READY) # Supplier.run on a real Kubernetes, with two nodes of this machine; its daemons are built once, in 10 minutes
	@RANKS=$(RANKS) EPOCHS=$(EPOCHS) launch/dev/run-kubernetes

clean: stopped-clusters ## removes what was built, except build/venv, the Sparks and Kubernetes; stops a mini-cluster
	rm -rf spark-supplier/target $(filter-out $(VENV) build/kubernetes $(wildcard build/spark-[0-9]*),$(wildcard build/*)) $(wildcard build/spark-[0-9]*/target)

distclean: stopped-clusters # removes everything that was made; stops a mini-cluster
	rm -rf spark-supplier/target build

# Without its state file, the cluster's processes, mounts and bridge could not be found any more.
stopped-clusters:
	@for state in $(filter-out build/kubernetes/cluster,$(wildcard build/*/cluster)); do launch/dev/mini-cluster stop --folder "$$(dirname $$state)" || exit; done
	@[ ! -e build/kubernetes/cluster ] || launch/dev/mini-kubernetes stop

include $(addprefix $(dir $(lastword $(MAKEFILE_LIST)))mk/,build.mk test.mk bench.mk release.mk)
