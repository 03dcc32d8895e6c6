"""make_tables.py: the header that it makes compiles, and a table that contradicts itself does not.

usage: layout_test.py PROTO C_COMPILER CXX_COMPILER
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROTO, *COMPILERS = map(pathlib.Path, sys.argv[1:])
TABLE = PROTO / "layout.tsv"


class LayoutTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, table):
        """Makes layout.h from the text of a table. The message if that failed, or ''."""
        (self.folder / "layout.tsv").write_text(table)
        program = shutil.copy(PROTO / "make_tables.py", self.folder)
        command = [sys.executable, program, self.folder / "layout.h"]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr

    def compile(self, compiler, language):
        """Compiles layout.h alone. The compiler's messages if that failed, or ''."""
        command = [compiler, "-Wall", "-Werror", "-fsyntax-only", "-x", language, self.folder / "layout.h"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        return done.stderr if done.returncode else ""

    def changed(self, old, new):
        table = TABLE.read_text()
        self.assertIn(old, table)
        return table.replace(old, new)

    def test_the_header_compiles_as_c_and_as_cxx(self):
        self.assertEqual("", self.make(TABLE.read_text()))
        for compiler, language in zip(COMPILERS, ("c", "c++")):
            self.assertEqual("", self.compile(compiler, language))

    def test_a_table_that_contradicts_itself_is_refused(self):
        for old, new, problem in [
            ("published\t128\t8\tu64", "published\t96\t8\tu64", "mapped_file_header.published: offset 96 lies within"),
            (
                "published\t128\t8\tu64",
                "published\t128\t4\tu64",
                "mapped_file_header.published: a u64 has 8 bytes, not 4",
            ),
            ("rank\t56\t4\ti32", "rank\t56\t4\ti16", "mapped_file_header.rank: the type 'i16' is unknown"),
            (
                "block_header\tnotification\t0\t64",
                "block_header\tnotification\t0\t56",
                "a notification has 64 bytes, not 56",
            ),
            ("notification\tSIZE\t64", "notification\tSIZE\t56", "notification.SIZE: offset 56 lies within"),
            ("request\tSIZE\t16", "request\tend\t16", "request.end: the type '-' is unknown"),
            ("structure\tfield", "structure\tname", "the columns must be"),
        ]:
            with self.subTest(new):
                self.assertIn(problem, self.make(self.changed(old, new)))

    def test_the_last_row_of_a_structure_is_its_size(self):
        lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("request\tSIZE")]
        self.assertIn("request: the last row must be SIZE", self.make("\n".join(lines)))

    def test_an_offset_at_which_the_compiler_cannot_place_the_field_does_not_compile(self):
        self.assertEqual("", self.make(self.changed("start_element\t88\t8\tu64", "start_element\t84\t8\tu64")))
        self.assertIn("layout.tsv: mapped_file_header.start_element", self.compile(COMPILERS[0], "c"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
