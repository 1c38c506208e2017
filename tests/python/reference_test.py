"""docs/PYTHON_API.md is what the docstrings say, and every public name is in it.

usage: reference_test.py     (run by ctest)
"""
import subprocess
import sys
import unittest

import terse
from fleet import SOURCE


class Reference(unittest.TestCase):
    def test_the_document_is_current(self):
        made = subprocess.run([sys.executable, SOURCE / "python" / "make_reference.py"], capture_output=True, text=True, check=True)
        self.assertEqual((SOURCE / "docs" / "PYTHON_API.md").read_text(), made.stdout,
                         "run: PYTHONPATH=python /usr/bin/python3 python/make_reference.py > docs/PYTHON_API.md")

    def test_every_public_name_is_in_it(self):
        text = (SOURCE / "docs" / "PYTHON_API.md").read_text()
        for name in terse.__all__:
            self.assertTrue(name.startswith("__") or f"`terse.{name}" in text, name)
            self.assertTrue(getattr(terse, name).__doc__, name)

    def test_every_public_module_is_in_it(self):
        """Those among them that cannot be imported here, because they need packages of others."""
        text = (SOURCE / "docs" / "PYTHON_API.md").read_text()
        for file in (SOURCE / "python" / "terse").glob("[a-z]*.py"):
            if file.stem != "errors":  # terse has its names
                self.assertIn(f"`terse.{file.stem}.", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # ctest names a folder, which is not needed here
