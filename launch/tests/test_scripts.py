"""The small scripts: config files, digits, counting tests."""

import collections
import os
import signal
import subprocess

import datum_pb2
import lmdb
import pytest
from sklearn.datasets import load_digits

from places import DIGITS, LAUNCH, ROOT
from processes import ran


def lines(file):
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


class TestMakeConfigs:
    def test_a_line_a_pair(self, tmp_path):
        folder, output = tmp_path / "pairs", tmp_path / "configs"
        # Also when they are there.
        for _ in range(2):
            assert ran(LAUNCH / "make-configs", "--ring", "64KiB", "--block=4096", 2, folder, output).returncode == 0
        assert lines(output / "mapped-files.conf") == [
            f"{folder}/pair-{i}.mapped ring=64KiB block=4096" for i in range(2)
        ]
        assert lines(output / "named-pipes.conf") == [
            f"{folder}/pair-{i}.request {folder}/pair-{i}.notification" for i in range(2)
        ]

    def test_nothing_is_overwritten(self, tmp_path):
        (tmp_path / "named-pipes.conf").write_text("mine")
        done = ran(LAUNCH / "make-configs", 1, tmp_path)
        assert done.returncode == 1 and "named-pipes.conf is there already with other lines" in done.stderr
        assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]

    @pytest.mark.parametrize(
        "arguments, message",
        [
            (("0", "folder"), "N '0'"),
            (("--ring", "4MB", "1", "folder"), "--ring '4MB'"),
            (("--block", "0", "1", "folder"), "--block '0'"),
            (("1", "a folder"), "white space"),
            (("1",), "Usage"),
            (("--size", "1", "1", "folder"), "Usage"),
        ],
        ids=str,
    )
    def test_what_it_refuses(self, tmp_path, arguments, message):
        done = ran(LAUNCH / "make-configs", *arguments, cwd=tmp_path)
        assert done.returncode != 0 and message in done.stderr
        assert list(tmp_path.iterdir()) == []


class TestMakeDigitsLmdb:
    @staticmethod
    def read(name):
        with (
            lmdb.open(str(DIGITS / name), readonly=True, lock=False) as environment,
            environment.begin() as transaction,
        ):
            return [(key, datum_pb2.Datum.FromString(value)) for key, value in transaction.cursor()]

    def test_every_digit_is_in_one_of_the_two(self):
        train, test = self.read("train_lmdb"), self.read("test_lmdb")
        assert (len(train), len(test)) == (1437, 360)
        for elements in (train, test):
            assert [key for key, _ in elements] == [b"%08d" % number for number in range(len(elements))]
            assert all(
                (datum.channels, datum.height, datum.width, len(datum.data)) == (1, 8, 8, 64) for _, datum in elements
            )
        digits = load_digits()
        expected = collections.Counter(
            (image.astype("uint8").tobytes(), int(label)) for image, label in zip(digits.images, digits.target)
        )
        assert collections.Counter((datum.data, datum.label) for _, datum in train + test) == expected

    def test_each_class_is_held_out_as_its_share(self):
        of_class = collections.Counter(datum.label for _, datum in self.read("test_lmdb"))
        assert sorted(of_class) == list(range(10)) and set(of_class.values()) <= {35, 36, 37}

    def test_it_is_the_same_each_time(self, tmp_path):
        assert ran(LAUNCH / "dev" / "make-digits-lmdb", tmp_path / "again").returncode == 0
        for name in ("train_lmdb", "test_lmdb"):
            assert (tmp_path / "again" / name / "data.mdb").read_bytes() == (DIGITS / name / "data.mdb").read_bytes()

    def test_nothing_is_overwritten(self, tmp_path):
        done = ran(LAUNCH / "dev" / "make-digits-lmdb", tmp_path)
        assert done.returncode == 1 and "is there already" in done.stderr
        assert list(tmp_path.iterdir()) == []


class TestCountTests:
    PASSED = '<testcase classname="a" name="b"/>'
    FAILED = '<testcase classname="a" name="c"><failure message="1 != 2">trace</failure></testcase>'
    BROKEN = '<testcase classname="a" name="e"><error message="no such fixture"/></testcase>'
    SKIPPED = '<testcase classname="a" name="d"><skipped message="needs root, to give a file away"/></testcase>'
    CTEST_FAILED = (
        '<testcase classname="f" name="f" status="fail"><failure message=""/>'
        "<system-out>Segmentation fault</system-out></testcase>"
    )

    @staticmethod
    def count(folder, *reports):
        files = []
        for number, cases in enumerate(reports):
            files.append(folder / f"{number}.xml")
            if cases is not None:
                files[-1].write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        done = ran(ROOT / ".ci" / "count-tests", *files)
        return done.returncode, done.stdout.splitlines()

    def test_all_passed(self, tmp_path):
        assert self.count(tmp_path, [self.PASSED] * 2, [self.PASSED]) == (0, ["3 passed, 0 failed"])

    def test_a_failure_is_named(self, tmp_path):
        status, output = self.count(tmp_path, [self.PASSED, self.FAILED, self.BROKEN, self.CTEST_FAILED])
        assert status == 1
        assert output == [
            "failed: a c: 1 != 2",
            "failed: a e: no such fixture",
            "failed: f f: Segmentation fault",
            "1 passed, 3 failed",
        ]

    def test_a_skipped_test_is_named(self, tmp_path):
        assert self.count(tmp_path, [self.PASSED, self.SKIPPED]) == (
            0,
            ["skipped: a d: needs root, to give a file away", "1 passed, 0 failed, 1 skipped"],
        )

    def test_a_test_that_is_skipped_for_want_of_a_build_has_failed(self, tmp_path):
        skipped = self.SKIPPED.replace("needs root, to give a file away", "no PySpark in this environment")
        assert self.count(tmp_path, [self.PASSED, skipped]) == (
            1,
            [
                "failed: a d: skipped for a reason that .ci/skips does not list: no PySpark in this environment",
                "1 passed, 1 failed",
            ],
        )

    @pytest.mark.parametrize("report", [None, [], ["<testcase"]], ids=["missing", "empty", "cut off"])
    def test_a_suite_that_did_not_run_has_failed(self, tmp_path, report):
        status, output = self.count(tmp_path, [self.PASSED], report)
        assert status == 1
        assert output[-1] == "1 passed, 1 failed" and "did not run to its end" in output[0]

    def test_a_folder_of_reports(self, tmp_path):
        self.count(tmp_path, [self.PASSED], [self.PASSED])
        assert ran(ROOT / ".ci" / "count-tests", tmp_path).stdout.splitlines() == ["2 passed, 0 failed"]


class TestMiniCluster:
    """The cluster tests have whole clusters. Here no Java is found, so nothing is started."""

    @staticmethod
    def start(folder):
        return ran(LAUNCH / "dev" / "mini-cluster", "start", "--folder", folder, JAVA_HOME="/nowhere")

    @pytest.mark.parametrize("name", ["conf", "nodes", "logs"])
    def test_files_of_others_are_not_removed(self, tmp_path, name):
        mine = tmp_path / name / "mine"
        mine.parent.mkdir()
        mine.touch()
        done = self.start(tmp_path)
        assert done.returncode == 1 and f"{tmp_path}/{name} is not a cluster's" in done.stderr
        assert [*tmp_path.iterdir(), *mine.parent.iterdir()] == [mine.parent, mine]

    def test_logs_of_an_earlier_cluster_are_accepted(self, tmp_path):
        assert "no Java found" in self.start(tmp_path).stderr
        (tmp_path / "logs").mkdir()
        assert "no Java found" in self.start(tmp_path).stderr


class TestMakefile:
    @staticmethod
    def make(*arguments, folder=ROOT, **environment):
        inherited = {name: os.environ[name] for name in os.environ.keys() - {"MAKEFLAGS", "MFLAGS", "RANKS", "EPOCHS"}}
        command = ["make", "-C", folder, "-f", ROOT / "Makefile", "--no-print-directory", *arguments]
        return subprocess.run(command, env={**inherited, **environment}, capture_output=True, text=True)

    def test_make_alone_prints_the_menu(self):
        done = self.make()
        assert done.returncode == 0
        for target in ("run", "test", "build", "bench", "packages", "reference", "clean"):
            assert any(line.split()[:1] == [target] for line in done.stdout.splitlines())

    @pytest.mark.parametrize(
        "arguments, environment, settings",
        [
            ((), {}, "RANKS=4 EPOCHS=3"),
            ((), {"RANKS": "6"}, "RANKS=6 EPOCHS=3"),
            (("EPOCHS=1",), {"RANKS": "6"}, "RANKS=6 EPOCHS=1"),
        ],
        ids=["defaults", "environment", "both"],
    )
    def test_settings_of_run_cluster(self, arguments, environment, settings):
        done = self.make("--dry-run", "run-cluster", *arguments, **environment)
        assert done.stdout.splitlines()[-1] == f"{settings} launch/dev/run-cluster"

    def test_bench_builds_the_library_that_it_measures(self):
        assert "build: libsupply " in self.make("--dry-run", "bench-programs").stdout

    @pytest.fixture
    def checkout(self, tmp_path):
        """A folder with as much of a checkout as `make clean` uses."""
        (tmp_path / "launch").symlink_to(LAUNCH)
        (tmp_path / "spark-supplier").mkdir()
        (tmp_path / "spark-supplier" / "pom.xml").symlink_to(ROOT / "spark-supplier" / "pom.xml")
        return tmp_path

    def test_clean_keeps_the_pythons(self, checkout):
        kept = {"venv", "spark-3.5"}
        for name in kept | {"wheel-venv", "spark-classes.jsa", "spark-3.5/target"}:
            (checkout / "build" / name).mkdir(parents=True, exist_ok=True)
        assert self.make("clean", folder=checkout).returncode == 0
        assert {path.name for path in (checkout / "build").iterdir()} == kept
        assert not list((checkout / "build" / "spark-3.5").iterdir())

    @pytest.mark.parametrize("target", ["clean", "distclean"])
    def test_a_running_cluster_is_stopped(self, checkout, target):
        """A process stands for the NameNode: mini-cluster finds daemons by their command lines."""
        folder = checkout / "build" / "hadoop"
        folder.mkdir(parents=True)
        state = f"nodes=(localhost) workers=1 master=127.0.0.1 port=2000 network=10.0.0 bridge= java_home={checkout}\n"
        (folder / "cluster").write_text(state)
        name = "org.apache.hadoop.hdfs.server.namenode.NameNode"
        command = ["sh", "-c", "read line", f"-Dyarn.log.dir={folder}/logs", "-cp=jars", name]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        try:
            done = self.make(target, folder=checkout)
            assert done.returncode == 0 and "mini-cluster: stopped\n" in done.stderr
            assert process.wait(10) == -signal.SIGTERM
            assert not folder.exists()
        finally:
            process.kill()
            process.communicate()
