"""tidy.py on a small tree of its own: findings in sources and headers end it, names may be the same in two sources, and
what was found clean is not examined again before it changes.

usage: tidy_test.py   (run by ctest)
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).resolve().with_name("tidy.py")
SETTINGS = "Checks: '-*,modernize-use-override'\nWarningsAsErrors: '*'\nHeaderFilterRegex: '/(storage|tests)/'\n"
CLEAN = "namespace {\nint Twice(int n) { return 2 * n; }\n}\nint CALL() { return Twice(3); }\n"
BASE = "struct Base { virtual ~Base() = default; virtual void Go() {} };\n"
FINDING = BASE + "struct Derived : Base { virtual void Go() {} };\n"
MENDED = BASE + "struct Derived : Base { void Go() override {} };\n"


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write(".clang-tidy", SETTINGS)
        self.sources = []

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def add(self, name, text):
        self.sources.append(self.write(name, text))

    def tidy(self):
        """(exit status, what it printed)"""
        self.write("build/compile_commands.json", json.dumps([
            {"directory": str(self.root), "file": str(source),
             "command": f"clang++-14 -std=c++17 -I{self.root} -o {source.name}.o -c {source}"} for source in self.sources]))
        run = subprocess.run([sys.executable, TIDY, self.root / "build", "--root", self.root, "--cache", self.root / "cache"],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr

    def test_a_finding_ends_it_until_it_is_mended(self):
        self.add("storage/one.cc", FINDING)
        code, text = self.tidy()
        self.assertEqual(code, 1, text)
        self.assertIn("storage/one.cc:2:38: error:", text)
        self.assertEqual(self.tidy()[0], 1, "the cache knows what is clean, and nothing else")
        self.write("storage/one.cc", MENDED)
        self.assertEqual(self.tidy()[0], 0)

    def test_a_librarys_own_sources_are_left_alone(self):
        elsewhere = tempfile.TemporaryDirectory()
        self.addCleanup(elsewhere.cleanup)
        foreign = pathlib.Path(elsewhere.name) / "library.cc"
        foreign.write_text(FINDING)
        self.sources.append(foreign)
        self.add("storage/one.cc", MENDED)
        code, text = self.tidy()
        self.assertEqual(code, 0, text)
        self.assertIn("1 sources in 1 units", text)

    def test_a_finding_in_a_header_is_said_once(self):
        self.write("storage/base.h", "#pragma once\n" + FINDING)
        self.add("storage/one.cc", '#include "storage/base.h"\n')
        self.add("storage/two.cc", '#include "storage/base.h"\n')
        code, text = self.tidy()
        self.assertEqual(code, 1, text)
        self.assertEqual(text.count("storage/base.h:3:38: error:"), 1, text)

    def test_tests_are_examined_together_where_their_names_differ(self):
        for name in ("one", "two", "three"):
            self.add(f"tests/{name}_test.cc", CLEAN.replace("CALL", name))
        code, text = self.tidy()
        self.assertEqual(code, 0, text)
        self.assertIn("3 sources in 3 units", text, "Twice is in all")
        self.add("tests/four_test.cc", "int Four() { return 4; }\n")
        self.assertIn("4 sources in 3 units", self.tidy()[1])

    def test_a_clash_that_packing_does_not_see_is_no_finding(self):
        self.add("tests/one_test.cc", "namespace {\n  int Hidden() { return 1; }\n}\nint One() { return Hidden(); }\n")
        self.add("tests/two_test.cc", "namespace {\n  int Hidden() { return 2; }\n}\nint Two() { return Hidden(); }\n")
        code, text = self.tidy()
        self.assertEqual(code, 0, text)
        self.assertIn("2 sources in 1 units", text)

    def test_what_is_clean_is_known_until_a_header_the_flags_or_the_checks_change(self):
        self.write("storage/base.h", "#pragma once\n" + MENDED)
        self.add("storage/one.cc", '#include "storage/base.h"\n')
        self.assertIn("0 of them known as clean", self.tidy()[1])
        self.assertIn("1 of them known as clean", self.tidy()[1])
        self.write("storage/base.h", "#pragma once\n" + MENDED + "struct More {};\n")
        self.assertIn("0 of them known as clean", self.tidy()[1])
        self.write(".clang-tidy", SETTINGS.replace("override'", "override,misc-unused-using-decls'"))
        self.assertIn("0 of them known as clean", self.tidy()[1])

    def test_what_does_not_compile_is_a_finding(self):
        self.add("storage/one.cc", '#include "storage/missing.h"\n')
        code, text = self.tidy()
        self.assertEqual(code, 1, text)
        self.assertIn("missing.h", text)


if __name__ == "__main__":
    unittest.main()
