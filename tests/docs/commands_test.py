"""docs/COMMANDS.md is what the programs say of themselves, and has every command and option.

usage: commands_test.py SOURCE BIN   (run by ctest)
"""

import pathlib
import re
import subprocess
import sys
import unittest

SOURCE, BIN = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "deploy" / "site"))
from commands import PROGRAMS, SCRIPTS, entries_of, row_of, sections_of  # noqa: E402

DOCUMENT = (SOURCE / "docs" / "COMMANDS.md").read_text(encoding="utf-8")


class Commands(unittest.TestCase):
    def test_the_document_is_current(self):
        made = subprocess.run(
            ["/usr/bin/python3", SOURCE / "deploy/site/commands.py", BIN], capture_output=True, text=True, check=True
        )
        self.assertEqual(DOCUMENT, made.stdout, "run: deploy/site/commands.py build/release/bin >docs/COMMANDS.md")

    def test_every_command_of_tersectl_is_in_it(self):
        """By the completion, which tersectl makes from its commands in another way."""
        completion = subprocess.run(
            [BIN / "tersectl", "completion", "bash"], capture_output=True, text=True, check=True
        ).stdout
        known = set(re.findall(r"^#+ tersectl (.+)$", DOCUMENT, re.MULTILINE))
        self.assertGreater(len(known), 30)
        for name in known:
            self.assertIn(name.split()[0], completion)
        for name in PROGRAMS + SCRIPTS:
            self.assertRegex(DOCUMENT, rf"(?m)^##+ {re.escape(name)}$")

    def test_every_option_is_in_it(self):
        for name in PROGRAMS:
            text = subprocess.run([BIN / name, "--help"], capture_output=True, text=True, check=True).stdout
            part = DOCUMENT.split(f"\n## {name}\n")[1].split("\n## ")[0]
            options = set(re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", text)) - {"--help"}
            self.assertTrue(options)
            for option in options:
                self.assertIn(f"`{option}`", part)

    def test_a_help_is_read(self):
        text = (
            "Does it\nUsage: it [OPTIONS]\n\nOptions:\n  -h,--help                   Print\n"
            "  --a INT:from 0 to 9=3 Needs: --b\n                              How many\n"
            "  --b TEXT:{x,y} REQUIRED (Env:IT) which | what\n\n"
            "Exit codes: 0\n"
        )
        sections = sections_of(text)
        self.assertEqual(sections["end"], ["Exit codes: 0"])
        entries = entries_of(sections["Options"])
        self.assertEqual(entries[1], ["--a INT:from 0 to 9=3 Needs: --b", "How many"])
        self.assertEqual(row_of(*entries[1]), "| `--a` | INT from 0 to 9 | `3` | How many (needs `--b`) |")
        self.assertEqual(
            row_of("--b TEXT:{x,y} REQUIRED (Env:IT)", "which | what"),
            "| `--b` | TEXT {x,y} | required | which \\| what (or the variable `IT`) |",
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
