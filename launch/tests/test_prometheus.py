"""supply-stat --prometheus: every line is as the text format 0.0.4 says, and the numbers are those of the pairs."""

import http.server
import json
import math
import os
import re
import shutil
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest

import headers
from places import PROGRAMS
from waiting import wait_until

STAT = PROGRAMS / "supply-stat"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
SAMPLE = re.compile(rf"({NAME})\{{(.*)\}} (\S+)")
ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def text_of(*arguments):
    done = subprocess.run([STAT, "--prometheus", *arguments], capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode("utf-8")


def labels_of(text):
    """The labels of a sample. Nothing but these and commas may be there."""
    labels, end = {}, 0
    while end < len(text):
        found = LABEL.match(text, end)
        assert found, text[end:]
        assert found[1] not in labels and not found[1].startswith("__")
        labels[found[1]] = re.sub(r"\\.", lambda escape: ESCAPED[escape[0]], found[2])
        end = found.end()
        assert end == len(text) or text[end] == ","
        end += 1
    return labels


def parsed(text):
    """By metric, its samples: labels and value. Each metric has HELP, then TYPE, then its samples, and comes once."""
    assert text.endswith("\n") and "\r" not in text and "\0" not in text
    metrics, lines, kinds = {}, text.split("\n")[:-1], {}
    for number, line in enumerate(lines):
        if help_line := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            name = help_line[1]
            assert name not in metrics and re.fullmatch(rf"# TYPE {name} (counter|gauge)", lines[number + 1])
            metrics[name] = []
        elif type_line := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line):
            assert type_line[1] == name and metrics[name] == []
            kinds[name] = type_line[2]
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample and sample[1] == name, line
            labels, value = labels_of(sample[2]), float(sample[3])
            assert math.isfinite(value) and value >= 0
            assert labels not in [other for other, _ in metrics[name]]
            metrics[name].append((labels, value))
    assert kinds.keys() == metrics.keys()
    assert all((kind == "counter") == name.endswith("_total") for name, kind in kinds.items())
    return metrics


def test_pairs_with_a_rank_and_without(make_pairs, start_rank):
    pairs = make_pairs(2, ring="64KiB", block="16KiB")
    rank = start_rank(pairs, 0, arguments=["--count"])
    wait_until(lambda: headers.read(pairs.mapped_file(0), "version"))
    metrics = parsed(text_of(*pairs.options()))
    states = {(labels["pair"], labels["mapped_file"]): labels["state"] for labels, _ in metrics["supply_pair_info"]}
    assert states == {("0", str(pairs.mapped_file(0))): "open", ("1", str(pairs.mapped_file(1))): "absent"}
    for name, value in {
        "supply_ring_blocks": 4,
        "supply_block_bytes": 16384,
        "supply_published_blocks_total": 0,
        "supply_rank_waits": 1,
        "supply_task_waits": 0,
    }.items():
        [(labels, found)] = metrics[name]
        assert (labels["pair"], found) == ("0", value), name
    assert metrics["supply_epoch"] == metrics["supply_task_attempt"] == metrics["supply_exchange_ranks"] == []
    [(_, seconds)] = metrics["supply_waiting_seconds"]
    assert seconds >= 1
    rank.process.terminate()
    rank.finish()


class Served(http.server.BaseHTTPRequestHandler):
    """Any page is what supply-stat says of the server's pairs at that time."""

    def do_GET(self):
        page = text_of(*self.server.pairs.options()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


@pytest.mark.long
@pytest.mark.skipif(
    not shutil.which("prometheus"), reason="no Prometheus here (launch/dev/install-packages --for-long)"
)
def test_a_prometheus_scrapes_it(make_pairs, start_rank, tmp_path):
    pairs = make_pairs(1, ring="64KiB", block="16KiB")
    rank = start_rank(pairs, 0, arguments=["--count"])
    wait_until(lambda: headers.read(pairs.mapped_file(0), "version"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        server.pairs = pairs
        threading.Thread(target=server.serve_forever, daemon=True).start()
        targets = [f"127.0.0.1:{server.server_port}"]
        jobs = [{"job_name": "node", "scrape_interval": "5s", "static_configs": [{"targets": targets}]}]
        # JSON is YAML.
        (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        files = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
        with open(tmp_path / "log", "w") as log:
            scraping = subprocess.Popen(["prometheus", *files, f"--web.listen-address={address}"], stderr=log)
        try:

            def found(query):
                url = f"http://{address}/api/v1/query?query={urllib.parse.quote(query)}"
                try:
                    with urllib.request.urlopen(url, timeout=5) as answer:
                        return json.load(answer)["data"]["result"]
                except OSError:
                    return []

            wait_until(lambda: found("supply_ring_blocks"), 60)
            [one] = found("supply_ring_blocks")
            assert one["metric"]["mapped_file"] == str(pairs.mapped_file(0)) and one["value"][1] == "4"
            [share] = found("avg_over_time(supply_rank_waits[5m])")
            assert share["value"][1] == "1"
            metadata = urllib.request.urlopen(
                f"http://{address}/api/v1/metadata?metric=supply_elements_total", timeout=5
            )
            assert json.load(metadata)["data"]["supply_elements_total"][0]["type"] == "counter"
        finally:
            scraping.terminate()
            scraping.wait(60)
            server.shutdown()
    rank.process.terminate()
    rank.finish()


def test_any_name_of_a_file_is_a_label(tmp_path):
    folder = os.fsencode(tmp_path) + b'/a "quoted\\ \n\xff\xc3\xa9'
    os.mkdir(folder)
    with open(folder + b"/x.mapped", "wb") as file:
        file.write(b"no pair")
    [(labels, value)] = parsed(text_of(folder))["supply_pair_info"]
    assert value == 1 and labels["state"] == "invalid"
    assert labels["mapped_file"] == f'{tmp_path}/a "quoted\\ \n%FF%C3%A9/x.mapped'


@pytest.mark.parametrize("other", [["--json"], ["--interval", "1"]])
def test_it_is_printed_once(other):
    done = subprocess.run([STAT, "--prometheus", *other], capture_output=True, text=True)
    assert done.returncode == 2 and "leave --json and --interval out" in done.stderr
