# Artifacts of a release: docs/design/packaging.md. Nothing is published.

.PHONY: release test-release test-matrix wheel recipes archives maven jars jar

# What a user installs: docs/design/packaging.md. Nothing is published.
release: $(RELEASE_READY) | packages-for-release ## every artifact of a release, with checksums and an SBOM, in build/release; tests each one
	@rm -rf $(RELEASE)
	@$(MAKE) --no-print-directory maven
	@$(MAKE) --no-print-directory wheel archives
	@MACHINE=aarch64 launch/dev/build-wheels $(RELEASE)
	@launch/dev/write-recipes $(RELEASE)
	@for folder in maven spack conda; do \
		tar --create --gzip --sort=name --owner=0 --group=0 --directory $(RELEASE) --file $(RELEASE)/spark-supplier-$(VERSION)-$$folder.tar.gz $$folder || exit 1; \
	done
	@launch/dev/write-sbom $(RELEASE) $(RELEASE_BOMS)
	@$(MAKE) --no-print-directory test-release
	@cd $(RELEASE) && sha256sum --quiet --check SHA256SUMS && echo "release: ok, $$(wc -l < SHA256SUMS) files in $(RELEASE)"

test-release: $(DIGITS) | packages-for-release # installs each artifact of build/release into something empty, and uses it there
	@$(MAKE) --no-print-directory SPARK=4.1 spark
	@$(MAKE) --no-print-directory SPARK=3.5 spark
	@mkdir -p $(REPORTS)
	@$(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider --junitxml $(REPORTS)/release.xml launch/tests/release

# Downloads stay in build/matrix. CELLS='-k MPI' repeats only some cells.
test-matrix: $(DIGITS) | packages-for-matrix # build/release with other Sparks, Pythons, MPIs and systems, about 30 minutes (10 GB of downloads)
	@$(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider $(CELLS) launch/tests/matrix

wheel: jars | packages-for-wheel # of these the Python package: the sdist, and a wheel for each Python that is here
	@launch/dev/build-wheels $(RELEASE)

recipes: wheel # of these the recipes of Spack and conda, and the sdist that they build
	@launch/dev/write-recipes $(RELEASE)

archives: jars | packages-for-archives # of these the tarball and the Debian packages
	@echo 'build: the tarball and the Debian packages'
	@env -u MAKEFLAGS -u MFLAGS JOBS=$(JOBS) launch/dev/build-archives $(RELEASE)

maven: maven-4.1 maven-3.5 # of these a Maven repository with the jars of every Spark, their sources and documentation

maven-3.5: maven-4.1

# The library of LMDB in them is compiled with the zig there.
jars: $(RELEASE_READY)
	@$(MAKE) --no-print-directory SPARK=4.1 jar
	@$(MAKE) --no-print-directory SPARK=3.5 jar

jar: $(JAR)

maven-%: | packages
	@echo 'build: $(RELEASE)/maven for Spark $*'
	@mkdir -p $(RELEASE)
	@$(LMDB_LIBRARY)
	@$(MAVEN_OF) spark-$*,release deploy -DskipTests -Dmaven.test.skip=true -DaltDeploymentRepository=release::file:$(CURDIR)/$(RELEASE)/maven \
		> build/maven-$*.log 2>&1 || { cat build/maven-$*.log >&2; exit 1; }
