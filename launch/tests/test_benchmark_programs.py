"""The C baselines of bench/: what they read, and what they refuse. Nothing is timed."""

import json
import shutil
import subprocess
import sys

import pytest

from places import ROOT


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Compiles a program of bench/c without the library."""
    folder, sources = tmp_path_factory.mktemp("programs"), ROOT / "bench" / "c"
    subprocess.run([sys.executable, ROOT / "proto" / "make_tables.py", folder / "layout.h"], check=True)

    def build(name, source):
        program = folder / name
        options = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-I", folder, "-o", program]
        subprocess.run(["cc", *options, sources / source, sources / "bench.c", "-lz"], check=True)
        return program

    return build


class TestPrograms:
    @staticmethod
    def answers(program, arguments, lines):
        words = [program, *map(str, arguments)]
        done = subprocess.run(words, input=lines, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    @pytest.mark.parametrize("readers", [(), (1,), (3,), (8,)], ids=lambda words: f"{len(words) and words[0]} readers")
    @pytest.mark.parametrize(("element", "block", "ring"), [(64, 64, 128), (784, 4096, 8192), (4096, 8192, 8192)])
    def test_each_reader_of_the_c_ring_reads_every_word_in_every_round(self, built, element, block, ring, readers):
        elements = 3 * ring // element + 1
        answers = self.answers(built("ring", "ring.c"), [elements * element, element, block, ring, *readers], "\n" * 3)
        words = elements * element // 8
        expected = sum(i * 0x9E3779B97F4A7C15 for i in range(words)) % (1 << 64)
        assert [(a["elements"], a["bytes"], a["sum"]) for a in answers] == [
            (elements, elements * element, expected)
        ] * 3
        assert all(a["cpu_nanos"] > 0 and a["readers_nanos"] > 0 for a in answers)

    def test_the_c_ring_says_what_does_not_fit(self, built):
        done = subprocess.run([built("ring", "ring.c"), "4096", "4096", "64", "128"], capture_output=True, text=True)
        assert done.returncode == 1 and "an element has 4096 bytes" in done.stderr

    def test_a_resident_file_is_found_by_a_pattern(self, built, tmp_path):
        program, pattern = built("in-place", "in_place.c"), str(tmp_path / "pair-0.mapped.*.resident")
        assert [answer["elements"] for answer in self.answers(program, [pattern], "\n")] == [0]
        golden = ROOT / "proto" / "golden" / "task-resident-file.resident"
        for name in ("pair-0.mapped.0123456789abcdef.resident", "pair-1.mapped.0123456789abcdef.resident"):
            shutil.copy(golden, tmp_path / name)
        first, second = self.answers(program, [pattern], "\n" * 2)
        assert first["elements"] == second["elements"] == 3 and first["sum"] == second["sum"] != 0
        shutil.copy(golden, tmp_path / "pair-0.mapped.0.resident")
        done = subprocess.run([program, pattern], input="\n", capture_output=True, text=True)
        assert done.returncode == 1 and "2 files match" in done.stderr
