"""How the commands start and end both sides, with stand-ins for Spark, MPI and Slurm."""

import os
import signal
import subprocess
import urllib.parse

import pytest

from places import LAUNCH
from processes import ran
from waiting import wait_until

ENDLESS = "exec sleep 1000"

# What a stand-in for mpirun says first of itself. Then it changes the folder of the pairs, as a rank that opens one.
OPEN_MPI = (
    "if [[ $1 == --version ]]; then echo 'mpirun (Open MPI) 4.1.4'; exit; fi; "
    'pair=$(tail --lines 1 "$SUPPLY_MAPPED_FILES" 2> /dev/null); '
    '{ [[ -z $pair ]] || : > "${pair%% *}"; } 2> /dev/null || true'
)


@pytest.fixture
def environment(tmp_path):
    """The environment that finds the stand-ins, and that of a job of Slurm with one rank on one node."""
    return {
        "PATH": f"{tmp_path}/spark/bin:{os.environ['PATH']}",
        "SPARK_HOME": f"{tmp_path}/spark",
        "JAVA_HOME": "",
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_JOB_NODELIST": "node",
        "SLURM_TASKS_PER_NODE": "1",
    }


@pytest.fixture
def stand_in(tmp_path):
    """Writes programs that replace others on PATH."""

    def write(**scripts):
        folder = tmp_path / "spark" / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        for name, script in scripts.items():
            program = folder / name.replace("_", "-")
            program.write_text(f"#!/bin/bash\n{script}\n")
            program.chmod(0o755)

    write(
        spark_submit="",
        java="",
        mpirun=OPEN_MPI,
        scontrol="echo node",
        srun="cat > /dev/null",
        spark_class=f"echo Starting Spark master at spark://node:7077; {ENDLESS}",
    )
    return write


@pytest.fixture
def on_yarn(environment, tmp_path):
    """The environment of a run on YARN, and the options that name its files, in a folder whose name is no URI."""
    folder = tmp_path / "50 % of #1 é"
    folder.mkdir()
    for name in ("core-site.xml", "hosts", "mapped-files", "named-pipes"):
        (folder / name).touch()
    options = [f"--{name}={folder}/{name}" for name in ("hosts", "mapped-files", "named-pipes")]
    return {**environment, "HADOOP_CONF_DIR": str(folder)}, options


@pytest.fixture
def start(supply_run, environment, tmp_path):
    """Starts supply-run or slurm-run."""

    def start(script, *options, **more):
        if script == "slurm-run":
            options += ("--folder", tmp_path)
        return supply_run("--lmdb", "/a", *options, script=LAUNCH / script, program=("true",), **environment, **more)

    return start


@pytest.fixture
def opened(stand_in, tmp_path):
    """
    No folder can be removed, as on an NFS if a file in it is open. Returns the file that lists what the process had
    open when it tried.
    """
    stand_in(rm=f'readlink /proc/$PPID/fd/* >> {tmp_path}/opened; /bin/rm "$@"; exit 1')
    return tmp_path / "opened"


@pytest.mark.parametrize("script", ["supply-run", "slurm-run"])
def test_a_folder_that_cannot_be_removed_is_no_failure(start, opened, tmp_path, script):
    run = start(script)
    assert run.finish() == 0, run.errors
    assert str(tmp_path) not in opened.read_text()


@pytest.mark.parametrize(
    "script, failing, reason",
    [
        ("supply-run", "spark_submit", "supply-run: the Supplier failed (status 1): out of luck"),
        ("slurm-run", "spark_class", "slurm-run: error: Spark's master ended (the end of its log is above)"),
    ],
)
def test_a_folder_that_cannot_be_removed_does_not_hide_the_reason(
    start, stand_in, opened, tmp_path, script, failing, reason
):
    stand_in(**{failing: "echo out of luck; exit 1"})
    run = start(script)
    assert run.finish() == 1
    assert run.errors[-1] == reason
    assert "out of luck" in run.errors
    assert str(tmp_path) not in opened.read_text()


@pytest.mark.parametrize("folder", [{}, {"SUPPLY_RESULTS_FOLDER": "/results"}])
def test_ranks_on_other_nodes_get_the_folder_of_results(start, stand_in, tmp_path, folder):
    stand_in(mpirun=f"{OPEN_MPI}; echo $* >> {tmp_path}/mpirun")
    assert start("supply-run", **folder).finish() == 0
    command = (tmp_path / "mpirun").read_text()
    assert "-x SUPPLY_TIMEOUT" in command and ("-x SUPPLY_RESULTS_FOLDER" in command) == bool(folder)


def test_a_timeout_with_a_leading_zero(start, stand_in):
    stand_in(spark_submit="sleep 1")  # The ranks end first.
    run = start("supply-run", "--timeout", "090")
    assert (run.finish(), run.errors) == (0, [])


def test_only_the_user_can_read_the_secret_of_a_job(start, stand_in, tmp_path):
    """Even if the site's settings are links, or read-only, or open to all."""
    site = tmp_path / "site" / "spark-defaults.conf"
    site.parent.mkdir()
    site.write_text("spark.eventLog.enabled true")
    site.chmod(0o444)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").symlink_to("../site/spark-defaults.conf")
    (tmp_path / "link").symlink_to("conf")
    stand_in(
        spark_submit='for file in "$SPARK_CONF_DIR"/*; do stat -c %A "$file"; cat "$file"; done '
        f"> {tmp_path}/settings\n"
        # A process may end before it is read.
        f"cat /proc/[0-9]*/cmdline > {tmp_path}/commands 2> /dev/null; true"
    )
    run = start("slurm-run", SPARK_CONF_DIR=str(tmp_path / "link"))
    assert run.finish() == 0, run.errors
    mode, *settings = (tmp_path / "settings").read_text().splitlines()
    assert mode == "-rw-------"
    assert "spark.eventLog.enabled true" in settings
    [secret] = [line.split()[1] for line in settings if line.startswith("spark.authenticate.secret ")]
    assert {"spark.ui.killEnabled false", "spark.master.rest.enabled false"} <= set(settings)
    commands = (tmp_path / "commands").read_text(errors="replace")
    assert "slurm-run" in commands and secret not in commands
    assert site.read_text() == "spark.eventLog.enabled true"


def test_a_job_has_every_folder_of_the_settings(start, stand_in, tmp_path):
    folder = tmp_path / "conf" / "python"
    folder.mkdir(parents=True)
    (folder / "settings.py").write_text("anything = 1")
    stand_in(spark_submit=f'cp "$SPARK_CONF_DIR/python/settings.py" {tmp_path}')
    run = start("slurm-run", SPARK_CONF_DIR=str(tmp_path / "conf"))
    assert run.finish() == 0, run.errors
    assert (tmp_path / "settings.py").read_text() == "anything = 1"


def test_settings_that_cannot_be_copied(start, stand_in, tmp_path):
    run = start("slurm-run", SPARK_CONF_DIR=str(tmp_path / "missing"))
    assert run.finish() == 1
    assert run.errors[-1] == f"slurm-run: error: SPARK_CONF_DIR: {tmp_path}/missing cannot be copied"


def test_what_is_cleaned_on_the_nodes_is_not_on_stdout(start, stand_in, tmp_path):
    stand_in(mpirun=f"{OPEN_MPI}; [[ $* != *supply-clean* ]] || {{ echo cleaned; exit; }}; exit 1")
    (tmp_path / "hosts").write_text("node")
    files = [word for name in ("hosts", "mapped-files", "named-pipes") for word in (f"--{name}", tmp_path / name)]
    run = start("supply-run", *files)
    assert run.finish() == 1
    assert "cleaned" in run.errors


def test_an_empty_timeout_is_the_default(start, stand_in):
    run = start("supply-run", SUPPLY_TIMEOUT="")
    assert (run.finish(), run.errors) == (0, [])


def test_an_application_on_yarn_gets_time_to_end(supply_run, stand_in, on_yarn, tmp_path):
    """That takes longer than another side gets."""
    stand_in(
        spark_submit=f"touch {tmp_path}/submitted; {ENDLESS}",
        mpirun=f"{OPEN_MPI}; [[ $* != *true ]] || {ENDLESS}",
        java=f"[[ $* != *EndApplication* ]] || {{ sleep 7; touch {tmp_path}/ended; }}",
    )
    environment, options = on_yarn
    run = supply_run("--yarn", "1g,1,1", *options, "--lmdb", "/a", program=("true",), **environment)
    wait_until((tmp_path / "submitted").exists)
    run.process.terminate()
    assert run.finish() == 143
    assert (tmp_path / "ended").exists()


def submit(on_yarn, *options):
    environment, files = on_yarn
    return ran(LAUNCH / "submit-supplier", "1g", "1", "1", *files, *options, **environment)


def test_a_submission_that_yarn_refuses_says_why_last(stand_in, on_yarn):
    thrown = "Required executor memory (4096 MB) is above the max threshold (4096 MB) of this cluster!"
    trace = f'Exception in thread "main" java.lang.IllegalArgumentException: {thrown}\n\tat org.apache.spark.Client\n'
    stand_in(spark_submit=f"printf '{trace}' >&2; exit 1")
    done = submit(on_yarn)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"supplier: error: the application was not submitted: {thrown}"


def test_the_settings_of_the_site_hold(stand_in, on_yarn, tmp_path):
    """And those of the product for what the site does not set."""
    stand_in(
        spark_submit=f'printf "%s\\n" "$@" > {tmp_path}/arguments; printf %s "$SPARK_CONF_DIR" > {tmp_path}/settings'
    )
    of_site = tmp_path / "spark" / "conf"
    of_site.mkdir()
    (of_site / "spark-defaults.conf").write_text("# Ours\nspark.yarn.queue  training\nspark.ui.enabled=true\n")
    environment, files = on_yarn
    environment["SPARK_CONF_DIR"] = ""
    assert submit((environment, files)).returncode == 0
    assert (tmp_path / "settings").read_text() == str(of_site)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert "spark.speculation=false" in arguments
    assert not any("spark.ui.enabled" in argument for argument in arguments)


def test_java_home_wins_over_path(stand_in, on_yarn, tmp_path):
    """The java on PATH may be too old."""
    stand_in(spark_submit=f"touch {tmp_path}/submitted", java="exit 1")
    java = tmp_path / "java-17" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/bash\n")
    java.chmod(0o755)
    environment, options = on_yarn
    done = submit(({**environment, "JAVA_HOME": str(tmp_path / "java-17")}, options))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "submitted").exists()


def test_no_java(stand_in, on_yarn):
    environment, options = on_yarn
    done = submit(({**environment, "JAVA_HOME": "/no/java"}, options))
    assert done.returncode == 127
    assert "error: there is no /no/java/bin/java: install Java 17, or set JAVA_HOME" in done.stderr


def test_a_second_interrupt_leaves_the_application(stand_in, on_yarn, tmp_path):
    stand_in(
        spark_submit=f"touch {tmp_path}/submitted; {ENDLESS}",
        java=f"[[ $* != *EndApplication* ]] || {{ touch {tmp_path}/ending; {ENDLESS}; }}",
    )
    environment, files = on_yarn
    with subprocess.Popen(
        [LAUNCH / "submit-supplier", "1g", "1", "1", *files],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as submitter:
        for step in ("submitted", "ending"):
            wait_until((tmp_path / step).exists)
            # As a terminal does.
            os.killpg(submitter.pid, signal.SIGINT)
        _, errors = submitter.communicate(timeout=60)
    assert submitter.returncode == 130
    assert "the application may still run: find it by its tag (yarn application -list -appTags supply-" in errors


def test_files_are_shipped_from_any_folder(stand_in, on_yarn, tmp_path):
    stand_in(spark_submit=f'printf "%s\\n" "$@" > {tmp_path}/arguments')
    assert submit(on_yarn).returncode == 0
    arguments = (tmp_path / "arguments").read_text().splitlines()
    uris = [urllib.parse.urlsplit(uri) for uri in arguments[arguments.index("--files") + 1].split(",")]
    assert [uri.fragment for uri in uris] == ["hosts", "mapped-files.conf", "named-pipes.conf"]
    assert all(uri.scheme == "file" and uri.path.isascii() and " " not in uri.path for uri in uris)
    assert [f"--{uri.fragment.removesuffix('.conf')}={urllib.parse.unquote(uri.path)}" for uri in uris] == on_yarn[1]


@pytest.mark.parametrize("of_site", [None, "site"])
@pytest.mark.parametrize("tags", [[], ["team"], ["first", "team,night"]], ids=str)
def test_ctrl_c_ends_an_application_with_tags_of_the_user(supply_run, stand_in, on_yarn, tmp_path, tags, of_site):
    stand_in(
        spark_submit=f'printf "%s\\n" "$@" > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/arguments; {ENDLESS}',
        java=f"[[ $* != *EndApplication* ]] || echo -n ${{!#}} > {tmp_path}/ended",
    )
    environment, files = on_yarn
    if of_site:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "spark-defaults.conf").write_text(f"spark.yarn.tags {of_site}\n")
        environment["SPARK_CONF_DIR"] = str(tmp_path / "site")
    conf = [f"--conf=spark.yarn.tags={of_user}" for of_user in tags]
    submitter = subprocess.Popen(
        [LAUNCH / "submit-supplier", "1g", "1", "1", *files, *conf], env={**os.environ, **environment}
    )
    wait_until((tmp_path / "arguments").exists)
    submitter.terminate()
    assert submitter.wait(30) == 143
    given = [line for line in (tmp_path / "arguments").read_text().splitlines() if line.startswith("spark.yarn.tags=")]
    # spark-submit takes the last one.
    *of_user, of_run = given[-1].partition("=")[2].split(",")
    assert of_user == (tags[-1].split(",") if tags else [of_site] if of_site else [])
    assert of_run == (tmp_path / "ended").read_text()


@pytest.mark.parametrize("name", ["1,2", "run[1]"])
def test_a_file_that_spark_cannot_ship_is_refused(on_yarn, tmp_path, name):
    (tmp_path / name).touch()
    done = submit(on_yarn, "--hosts", tmp_path / name)
    assert done.returncode == 1
    assert done.stderr.startswith(f"submit-supplier: error: --hosts: Spark cannot ship {tmp_path / name}")


def test_a_launcher_that_is_not_known(start, stand_in):
    stand_in(mpirun="echo 'Intel(R) MPI Library for Linux* OS, Version 2021.9'")
    run = start("supply-run")
    assert run.finish() == 1
    assert "is neither Open MPI's mpirun nor MPICH's mpiexec" in run.errors[-1]


def test_a_run_that_fails_at_once_is_started_again_once(start, stand_in):
    stand_in(mpirun=f"{OPEN_MPI}; sleep 1; exit 1", spark_submit="echo out of luck at $RANDOM; exit 1")
    run = start("supply-run", "--max-restarts", 3)
    assert run.finish() == 1
    first, last = [line for line in run.errors if line.startswith("supply-run: ")]
    assert first.startswith("supply-run: restart 1 of 3: the Supplier failed (status 1): out of luck at ")
    assert last.startswith("supply-run: the Supplier failed (status 1): out of luck at ")
    assert "(no restart: the attempt before began at the same place, and said: the Supplier failed (status 1): " in last


def test_a_run_is_started_again_until_it_succeeds(start, stand_in, tmp_path):
    die = f"echo $SUPPLY_RESTARTS >> {tmp_path}/attempts; (($SUPPLY_RESTARTS == 2)) || kill -KILL $$"
    stand_in(mpirun=f"{OPEN_MPI}; {die}")
    run = start("supply-run", "--max-restarts", 2)
    assert run.finish() == 0
    assert (tmp_path / "attempts").read_text().split() == ["0", "1", "2"]
    assert run.errors == [f"supply-run: restart {number} of 2: mpirun was killed (SIGKILL)" for number in (1, 2)]


@pytest.mark.parametrize(
    "script, status",
    [("echo unknown option; exit 2", 2), ("kill -TERM $PPID; exec sleep 1000", 143)],
    ids=["an option that is wrong", "a signal"],
)
def test_nothing_is_started_again_in_vain(start, stand_in, script, status):
    stand_in(mpirun=f"{OPEN_MPI}; {ENDLESS}", spark_submit=script)
    run = start("supply-run", "--max-restarts", 3)
    assert run.finish() == status
    assert not any("restart" in line for line in run.errors)


def test_a_signal_between_two_attempts_is_not_lost(start, stand_in):
    stand_in(mpirun=f"{OPEN_MPI}; exit 4", spark_submit="exit 4", rm='kill -TERM $PPID; exec /bin/rm "$@"')
    run = start("supply-run", "--max-restarts", 3)
    assert run.finish() == 143
    assert not any("restart" in line for line in run.errors)
