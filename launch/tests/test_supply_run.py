"""Whole runs by launch/supply-run: spark-submit and mpirun, started and ended together."""

import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import databases
from pairs import Pairs
from places import DIGITS, LAUNCH, PROGRAMS, SUPPLY_CAT
from waiting import wait_until

# For runs that the test ends.
ENDLESS = ("--epochs", "1000000")


@pytest.fixture
def entries(tmp_path):
    return databases.write(tmp_path / "lmdb", databases.numbered(300))


def last_message(run):
    assert run.errors[-1].startswith("supply-run: "), run.errors
    return run.errors[-1].removeprefix("supply-run: ")


@pytest.mark.parametrize(
    "options, lines", [((), 1), (("--in-place", "--ring", "auto"), 0)], ids=["copied", "in place, automatic ring"]
)
def test_every_element_once(supply_run, entries, options, lines):
    run = supply_run("--lmdb", entries, "--ranks", 3, "--epochs", 2, "--partitions", 7, *options)
    assert run.finish() == 0
    assert collections.Counter(run.lines) == databases.expected_lines(entries, 2)
    assert len([line for line in run.errors if line.startswith("supplier: ") and "--in-place" in line]) == lines


@pytest.mark.parametrize(
    "share, groups", [("2", [[0, 1], [2, 3]]), pytest.param("node", [[0, 1, 2, 3]], marks=pytest.mark.long)]
)
def test_ranks_of_a_group_get_the_same_elements(supply_run, entries, share, groups):
    run = supply_run("--lmdb", entries, "--ranks", 4, "--share", share, "--epochs", 2, "--partitions", 7)
    assert run.finish() == 0, "\n".join(run.errors)
    of_ranks = [(run.output / str(rank)).read_text().splitlines() for rank in range(4)]
    assert all(of_ranks[rank] == of_ranks[group[0]] for group in groups for rank in group)
    supplied = [line for group in groups for line in of_ranks[group[0]]]
    assert collections.Counter(supplied) == databases.expected_lines(entries, 2)


@pytest.mark.long
def test_many_ranks_on_config_files_of_the_user(supply_run, entries):
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        pairs = Pairs(pathlib.Path(folder), 7, ring="16KiB", block="8KiB")
        run = supply_run("--lmdb", entries, "--ranks=7", *pairs.options())
        assert run.finish() == 0
        assert collections.Counter(run.lines) == databases.expected_lines(entries)
        assert pairs.left_behind() == []


@pytest.mark.long
def test_relative_paths_count_from_where_the_command_is_called(supply_run, entries, monkeypatch):
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        pairs = Pairs(pathlib.Path(folder), 1)
        monkeypatch.chdir(folder)
        options = [os.path.relpath(word) if word.endswith(".conf") else word for word in map(str, pairs.options())]
        run = supply_run("--lmdb", entries, *options, MPIRUN="mpirun --wdir /")
        assert run.finish() == 0
        assert collections.Counter(run.lines) == databases.expected_lines(entries)


@pytest.mark.long
def test_ranks_that_come_late(supply_run, entries):
    # By then the Supplier waits for them.
    run = supply_run(
        "--lmdb", entries, "--block", "64KiB", program=("bash", "-c", f"sleep 12; exec {SUPPLY_CAT} --count")
    )
    assert run.finish() == 0
    assert run.lines[:2] == ["epochs\t1", "elements\t300"]


@pytest.mark.long
def test_stdout_is_that_of_the_ranks(entries):
    done = subprocess.run(
        [LAUNCH / "supply-run", "--lmdb", entries, "--", SUPPLY_CAT], stdout=subprocess.PIPE, check=True
    )
    assert collections.Counter(done.stdout.decode().splitlines()) == databases.expected_lines(entries)


@pytest.mark.long
def test_two_runs_at_once(supply_run, tmp_path):
    paths = [databases.write(tmp_path / str(seed), databases.numbered(200, seed=seed)) for seed in (1, 2)]
    runs = [supply_run("--lmdb", path, "--ranks", 2, "--epochs", 20) for path in paths]
    assert [run.finish() for run in runs] == [0, 0]
    for run, path in zip(runs, paths):
        assert collections.Counter(run.lines) == databases.expected_lines(path, 20)


def test_the_supplier_fails(supply_run, tmp_path):
    run = supply_run("--lmdb", tmp_path / "nowhere", "--ranks", 2)
    assert run.finish() == 1
    text = f"there is no LMDB at {tmp_path}/nowhere: no such file or directory (--lmdb)"
    assert last_message(run) == f"the Supplier failed (status 1): supplier: error: {text}"
    assert f"supply-cat: {text}" in run.errors


@pytest.mark.long
def test_fewer_task_slots_than_ranks(supply_run, entries):
    run = supply_run("--master", "local[1]", "--lmdb", entries, "--ranks", 2)
    assert run.finish() == 1
    assert re.fullmatch(r"the Supplier failed \(status 1\): .* slots for 1: use master local\[2\]", last_message(run))


@pytest.mark.long
def test_an_unknown_option(supply_run, entries):
    run = supply_run("--lmdb", entries, "--epoch", 3)
    assert run.finish() == 2
    assert re.fullmatch(r"the Supplier failed \(status 2\): .*--epoch.* did you mean --epochs\?.*", last_message(run))


@pytest.mark.long
def test_a_rank_fails(supply_run, entries):
    run = supply_run("--lmdb", entries, "--ranks", 2, program=(PROGRAMS / "train-digits",))
    assert run.finish() == 1
    wanted = r"the ranks failed \(status 1\): train-digits: rank \d: .* not a digit of 8 x 8 pixels"
    assert re.fullmatch(wanted, last_message(run))
    # Rank 0's MPI_Abort ends rank 1: the Supplier may see either rank first.
    assert any(
        re.match("supplier: error: .*(the rank failed: .* not a digit|ended before)", line) for line in run.errors
    )


@pytest.mark.long
def test_a_rank_dies_in_the_middle(supply_run, entries):
    die = f"""
        {SUPPLY_CAT} --count & pid=$!
        read -r file _ < <(grep ^/ "$SUPPLY_MAPPED_FILES")
        until (($(od -A n -t u8 -j 128 -N 8 "$file") > 0)); do sleep 0.1; done
        kill -KILL $pid; echo 'program: out of luck' >&2; exit 5"""
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        pairs = Pairs(pathlib.Path(folder))
        run = supply_run("--lmdb", entries, *ENDLESS, *pairs.options(), program=("bash", "-c", die))
        assert run.finish() == 5
        assert last_message(run) == "the ranks failed (status 5): program: out of luck"
        assert any(re.match("supplier: error: .*ended before it had taken all its data", line) for line in run.errors)
        assert pairs.left_behind() == []


@pytest.mark.long
def test_a_supplier_that_is_killed(supply_run, entries):
    run = supply_run("--lmdb", entries, *ENDLESS, program=(SUPPLY_CAT, "--count"))
    run.wait_until_supplied()
    os.kill(run.process_of("supply.lmdb.Supplier"), signal.SIGKILL)
    assert run.finish() == 137
    assert last_message(run) == "the Supplier was killed (SIGKILL)"
    assert not any("line 1:" in line for line in run.errors)


@pytest.mark.long
def test_a_rank_that_is_killed(supply_run, entries):
    kill = "[[ $OMPI_COMM_WORLD_RANK == 1 ]] && kill -KILL $$; exec sleep 1000"
    run = supply_run("--lmdb", entries, "--ranks", 2, program=("bash", "-c", kill))
    assert run.finish() == 137
    assert last_message(run) == "the ranks failed (status 137): a rank was ended by SIGKILL"


@pytest.mark.long
def test_both_sides_end_with_a_supply_run_that_is_killed(supply_run, entries):
    run = supply_run("--lmdb", entries, *ENDLESS, program=(SUPPLY_CAT, "--count"))
    run.wait_until_supplied()
    shared = pathlib.Path(run.mapped_file()).parent
    run.process.kill()
    wait_until(lambda: run.mark.processes() == [])
    # A killed supply-run leaves its folders.
    for folder in (shared, *run.temporary.iterdir()):
        shutil.rmtree(folder)
    run.finish()


@pytest.mark.parametrize("of_user", [False, pytest.param(True, marks=pytest.mark.long)], ids=["own", "the user's"])
def test_ranks_that_want_nothing(supply_run, entries, make_pairs, of_user):
    options = make_pairs(1).options() if of_user else ()
    # Without waiting for the limit.
    run = supply_run("--lmdb", entries, "--timeout", 10000, *options, program=("true",))
    assert run.finish() == 3
    assert re.fullmatch(r"the ranks have ended with status 0, .*supply_open\(\).*", last_message(run))


@pytest.mark.long
def test_one_rank_that_wants_nothing(supply_run, entries):
    some = 'test "$OMPI_COMM_WORLD_RANK" = 1 || exec "$@"'
    run = supply_run(
        "--lmdb", entries, "--ranks", 2, "--timeout", 15, program=("bash", "-c", some, "bash", SUPPLY_CAT, "--count")
    )
    assert run.finish() != 0
    assert "no rank has opened it" in last_message(run)


@pytest.mark.parametrize(
    "number, status",
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_ended_by_a_signal_in_the_middle(supply_run, entries, number, status):
    run = supply_run("--lmdb", entries, "--ranks", 2, *ENDLESS, program=(SUPPLY_CAT, "--count"))
    run.wait_until_supplied()
    # As a terminal does it: to the whole process group.
    os.killpg(run.process.pid, number)
    assert run.finish() == status


@pytest.mark.long
def test_ended_by_a_signal_at_the_start(supply_run, entries):
    run = supply_run("--lmdb", entries, "--ranks", 2)
    wait_until(lambda: list(run.temporary.iterdir()))
    run.process.send_signal(signal.SIGINT)
    assert run.finish() == 130


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        ((), 2, "no '--'"),
        (("--",), 2, "no program"),
        (("--ranks", "0", "--", "true"), 2, "--ranks '0'"),
        (("--ranks", "--", "true"), 2, "--ranks needs a value"),
        (("--timeout", "soon", "--", "true"), 2, "--timeout 'soon'"),
        (("--max-restarts", "-1", "--", "true"), 2, "--max-restarts"),
        (("--max-restarts", "1", "--serve", "--", "true"), 2, "--serve"),
        (("--mapped-files", "a.conf", "--", "true"), 2, "--named-pipes"),
        (
            ("--mapped-files", "a", "--named-pipes", "b", "--group", "c", "--", "true"),
            2,
            "--group stand in the config files",
        ),
        (("--group", "no-such-group", "--", "true"), 1, "no-such-group"),
        (("--", "/nowhere/program"), 127, "no program '/nowhere/program'"),
        (("--", DIGITS), 126, "not executable"),
    ],
    ids=str,
)
def test_nothing_is_started_if_the_command_line_is_wrong(supply_run, arguments, status, message):
    run = supply_run(*arguments, program=())
    assert run.finish() == status
    assert message in run.errors[-1]
    assert not any("supplier" in line for line in run.errors)


@pytest.mark.long
def test_a_supplier_does_not_wait_for_ranks_that_mpirun_has_ended(supply_run, entries):
    """A rank that is notified of the failure ends. Then mpirun ends a rank that never opens its pair."""
    never = f"[[ $OMPI_COMM_WORLD_RANK == 0 ]] || exec sleep 1000; exec {SUPPLY_CAT} --count"
    run = supply_run(
        "--lmdb", entries, "--ranks", 3, "--master", "local[2]", "--timeout", 1000, program=("bash", "-c", never)
    )
    assert run.finish() == 1
    # The Supplier has its own status: supply-run did not end it.
    assert re.fullmatch(r"the Supplier failed \(status 1\): .*3 ranks need 3 tasks at once.*", last_message(run))


def test_ranks_that_connect_are_started_by_something_else(entries):
    local = [f"--conf=spark.driver.{name}=127.0.0.1" for name in ("host", "bindAddress")]
    options = ["--serve-ranks=2", "--serve=cats", f"--lmdb={entries}", "--epochs=2", *local]
    command = [LAUNCH / "supply-run", *options]
    environment = {**os.environ, "SUPPLY_KEY": "a key of the test"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        try:
            said = next(line for line in run.stderr if "ranks connect by" in line)
            address = re.search("SUPPLY_CONNECT=(supply://127.0.0.1:[0-9]+/cats)\n", said)
            assert address, said
            environment["SUPPLY_CONNECT"] = address[1]
            ranks = [
                subprocess.Popen(SUPPLY_CAT, env={**environment, "RANK": f"{rank}"}, stdout=subprocess.PIPE, text=True)
                for rank in range(2)
            ]
            lines = [line for rank in ranks for line in rank.communicate(timeout=120)[0].splitlines()]
            assert [rank.returncode for rank in ranks] == [0, 0]
            rest = run.stderr.read()
            assert run.wait(timeout=60) == 0, rest
        finally:
            run.kill()
    assert collections.Counter(lines) == databases.expected_lines(entries, 2)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--serve-ranks", "2", "--", "true"), "--serve-ranks starts no PROGRAM"),
        (("--serve-ranks", "2", "--share", "2"), "--share is not for ranks that connect"),
        (("--serve-ranks", "2", "--ranks", "3"), "--serve-ranks has the number of ranks: leave --ranks out"),
        (("--serve", "name", "--", "true"), "--serve 'name' names a run of --serve-ranks"),
    ],
    ids=["program", "share", "ranks", "name"],
)
def test_options_that_are_not_for_ranks_that_connect(arguments, message):
    done = subprocess.run([LAUNCH / "supply-run", *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr
