"""README.md stays one page, and what it shows is what there is: the example in Python and the figures against others.

usage: readme_test.py SOURCE   (run by ctest)
"""

import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1])
README = (SOURCE / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 800


class Readme(unittest.TestCase):
    def test_it_is_one_page(self):
        self.assertLessEqual(len(README.split()), MOST_WORDS)

    def test_the_example_is_the_quickstart(self):
        (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
        self.assertIn(example, (SOURCE / "python/examples/quickstart.py").read_text(encoding="utf-8"))

    def test_the_figures_are_those_of_the_results(self):
        """Every figure stands in the section of RESULTS.md to which the table refers."""
        results = (SOURCE / "bench/RESULTS.md").read_text(encoding="utf-8")
        section = results.split("\n## Rivals side by side\n")[1].split("\n## ")[0]
        known = set(re.findall(r"[\d.,]*\d", section))
        rows = [line for line in README.splitlines() if line.startswith(("| Flower", "| Terse"))]
        self.assertEqual(len(rows), 4)
        for row in rows:
            figures = re.findall(r"[\d.,]*\d", row)
            self.assertEqual(len(figures), 4, row)
            self.assertEqual([figure for figure in figures if figure not in known], [], row)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
