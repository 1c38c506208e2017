"""The notebook of the package runs from its first cell to its last, and is stored without what it prints.

usage: notebook_test.py BIN     (run by ctest)
"""
import re
import sys
import unittest

import nbclient
import nbformat

import fleet

BIN = sys.argv.pop(1)
EXAMPLES = fleet.SOURCE / "python" / "examples"


class Notebooks(unittest.TestCase):
    def test_they_are_stored_without_outputs(self):
        notebooks = sorted(fleet.SOURCE.glob("python/**/*.ipynb"))
        self.assertIn(EXAMPLES / "quickstart.ipynb", notebooks)
        for path in notebooks:
            notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
            nbformat.validate(notebook)
            for cell in notebook.cells:
                self.assertEqual(cell.metadata, {}, f"{path}, cell {cell.id}")
                if cell.cell_type == "code":
                    self.assertEqual((cell.outputs, cell.execution_count), ([], None), f"{path}, cell {cell.id}: clear it")

    def test_the_quickstart_runs(self):
        notebook = nbformat.read(EXAMPLES / "quickstart.ipynb", as_version=nbformat.NO_CONVERT)
        nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
        streams = [(output.name, output.text) for cell in notebook.cells if cell.cell_type == "code"
                   for output in cell.outputs if output.output_type == "stream"]
        # Where tqdm is installed and ipywidgets is not, tqdm, which torch imports, says so.
        self.assertEqual([text for name, text in streams if name == "stderr" and "TqdmWarning" not in text], [])
        said = "".join(text for _, text in streams)
        self.assertEqual(said.count("all rounds are done"), 2)
        (accuracy,) = re.findall(r"right about ([\d.]+)% of new points", said)
        self.assertGreater(float(accuracy), 80)
        (whole, sent) = re.findall(r", (\d+) bytes, and took (\d+) bytes", said)[0]
        self.assertLess(20 * int(sent), int(whole))


if __name__ == "__main__":
    unittest.main()
