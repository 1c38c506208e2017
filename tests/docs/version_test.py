"""The version stands in core/version.h, and what repeats it says the same (docs/RELEASE.md).

usage: version_test.py SOURCE [BUILD]   (run by ctest)
"""

import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1])
BUILD = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
# Beside these, CHANGELOG.md has a section for every release.
REPEATED = (
    ("python/terse/_version.py", r'__version__ = "([^"]+)"'),
    ("CITATION.cff", r"^version: (\S+)$"),
    ("deploy/helm/terse/Chart.yaml", r"^version: (\S+)$"),
    ("deploy/helm/terse/Chart.yaml", r'^appVersion: "(\S+)"$'),
)


def first(path, pattern):
    """Returns the one match of the pattern's group in the file."""
    found = re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if len(found) != 1:
        raise AssertionError(f"{path}: {len(found)} times {pattern}")
    return found[0]


def numbers(version):
    return [int(part) for part in version.split(".")]


VERSION = first(SOURCE / "core/version.h", r'kVersion\[\] = "(\d+\.\d+\.\d+)"')


class Versions(unittest.TestCase):
    def test_what_repeats_the_version_says_the_same(self):
        for name, pattern in REPEATED:
            with self.subTest(name=name, pattern=pattern):
                self.assertEqual(first(SOURCE / name, pattern), VERSION, f"{name}: core/version.h says {VERSION}")

    def test_the_changes_of_this_version_are_told(self):
        sections = re.findall(r"^## \[(.+?)\](.*)$", (SOURCE / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(sections[0], ("Unreleased", ""))
        released = [name for name, _ in sections[1:]]
        self.assertEqual(released, sorted(released, key=numbers, reverse=True))
        for name, rest in sections[1:]:
            self.assertRegex(rest, r"^ - \d{4}-\d{2}-\d{2}$", name)
        if VERSION not in released:  # the version that is being made
            self.assertTrue(not released or numbers(VERSION) > numbers(released[0]), (VERSION, released))
            if not released:
                self.assertIn(f"calls itself {VERSION}", (SOURCE / "CHANGELOG.md").read_text(encoding="utf-8"))

    def test_the_build_reads_it_from_there(self):
        self.assertNotRegex((SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"), r"project\(\w+ VERSION \d")
        if BUILD is not None:
            package = BUILD / "TerseConfigVersion.cmake"
            self.assertEqual(first(package, r'^set\(PACKAGE_VERSION "([^"]+)"\)$'), VERSION)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
