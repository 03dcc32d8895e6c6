# Benchmarks.

.PHONY: bench bench-quick bench-cycle bench-feeders bench-programs loaders

bench: packages-for-bench bench-programs ## the benchmarks of the published page, about half an hour: build/bench/report.md, summary.json (flags: BENCH='--floor …')
	@$(MAKE) --no-print-directory loaders || echo 'skipped: other loaders in bench/one_call: they cannot be installed' >&2
	@bench/run $(BENCH)

bench-quick: bench-programs # cycle and lmdb with half of the data, fewer rounds and one pair, without the longest cases, in a few minutes
	@bench/run --quick $(BENCH)

bench-cycle: bench-programs # the cycle benchmark alone: GB/s from Spark's memory to a rank, against a bare copy
	@bench/cycle $(BENCH)

bench-feeders: bench-programs # a rank elsewhere alone: GB/s over TCP, against TCP itself, Arrow Flight and gRPC, in three minutes
	@bench/feeders $(BENCH)

bench-programs: packages-for-tests library $(JAR) $(BENCH_JAR) $(VENV_READY) $(WHEEL_READY) $(DATUM)
	@echo 'build: the programs of bench/'
	@mkdir -p build
	@{ $(CMAKE) -S bench/c -B build/bench-c && $(CMAKE) --build build/bench-c --parallel $(JOBS); } > build/bench-c.log 2>&1 \
		|| { cat build/bench-c.log >&2; exit 1; }
	@grep '^skipped:' build/bench-c.log >&2 || true

# What PySpark users would use instead, for one_call.
loaders: $(LOADERS_READY)

$(LOADERS_READY): configs/dev/loaders-requirements.txt | $(NEWEST_READY)
	@echo 'build: $(LOADERS_VENV)'
	@rm -rf $(LOADERS_VENV) && $(PYTHON) -m venv $(LOADERS_VENV)
	@realpath $(NEWEST_VENV)/lib/python3*/site-packages > $$(echo $(LOADERS_VENV)/lib/python3*/site-packages)/packages.pth
	@$(LOADERS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@touch $@

# The Spark side of bench/ is compiled with the tests, and is no part of the product's jar.
$(BENCH_JAR): $(JAR) $(shell find spark-supplier/src/bench -type f)
	@echo 'build: $@'
	@$(MAVEN) test-compile jar:test-jar@bench > build/spark-supplier-bench.log 2>&1 || { cat build/spark-supplier-bench.log >&2; exit 1; }
	@touch $@
