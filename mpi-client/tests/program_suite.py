"""A suite whose tests are programs: tests/sanitized and fuzz/run build and report in the same way."""

import subprocess
import xml.etree.ElementTree as ElementTree


def run(command, timeout=None, environment=None):
    """Runs a command. Its exit status, and its standard output and error together."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
        env=environment,
    )
    return done.returncode, done.stdout


def build(source, folder, options, target="all"):
    """Builds a target with CMake. A warning is an error. The output if that failed, else ''."""
    options = {**options, "SUPPLY_WARNINGS_AS_ERRORS": "ON"}
    configure = ["cmake", "-S", source, "-B", folder, *(f"-D{name}={value}" for name, value in options.items())]
    for command in (configure, ["cmake", "--build", folder, "--target", target, "--parallel", "2"]):
        status, output = run(command)
        if status:
            return output
    return ""


def write_junit(path, suite, outcomes):
    """Writes a JUnit report. outcomes: for each (class name, test name) passed, failed or skipped, and a text."""
    root = ElementTree.Element("testsuite", name=suite, tests=str(len(outcomes)))
    for (class_name, name), (outcome, text) in outcomes.items():
        case = ElementTree.SubElement(root, "testcase", classname=class_name, name=name)
        if outcome != "passed":
            plain = "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
            tag = "failure" if outcome == "failed" else "skipped"
            ElementTree.SubElement(case, tag, message=plain.splitlines()[0]).text = plain
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def finish(suite, outcomes, junit):
    """Writes the report if junit names a file, and prints the counts. The exit status: 1 if a test failed."""
    if junit:
        write_junit(junit, suite, outcomes)
    counts = {
        kind: sum(outcome == kind for outcome, _ in outcomes.values()) for kind in ("passed", "failed", "skipped")
    }
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if counts["failed"] else 0
