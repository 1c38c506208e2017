"""The manual pages that the programs print: every option of their help, and troff has no complaint.

usage: manual_pages_test.py BIN   (run by ctest)
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = sys.argv[1]
SECTIONS = {"terse-coordinator": 8, "terse-client": 8, "terse-relay": 8, "terse-simulate": 1, "terse-trainer-check": 1}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout, done.stderr


class ManualPages(unittest.TestCase):
    def test_every_option_is_there(self):
        for program, section in SECTIONS.items():
            if not os.path.exists(f"{BIN}/{program}"):
                continue  # this build has it not: it needs LibTorch
            with self.subTest(program=program):
                page, _ = run(f"{BIN}/{program}", "--man")
                escaped = program.upper().replace("-", "\\-")
                self.assertTrue(page.startswith(f".TH {escaped} {section} "), page[:60])
                self.assertIn(".SH EXIT STATUS\n", page)
                options = set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", run(f"{BIN}/{program}", "--help")[0], re.M))
                self.assertGreater(len(options), 3)
                for option in options - {"--help"}:
                    self.assertIn("\\fB\\&" + option.replace("-", "\\-") + "\\fR", page)

    @unittest.skipUnless(shutil.which("groff"), "there is no groff here")
    def test_troff_reads_it_without_a_warning(self):
        for program in SECTIONS:
            if not os.path.exists(f"{BIN}/{program}"):
                continue
            with self.subTest(program=program), tempfile.NamedTemporaryFile("w", suffix=".8") as file:
                file.write(run(f"{BIN}/{program}", "--man")[0])
                file.flush()
                text, warnings = run("groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-u", "-ww", file.name)
                self.assertEqual(warnings, "")
                self.assertIn(f"{program} - ", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
