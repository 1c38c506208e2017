"""deploy/demo.sh --model with the real programs: it trains a user's module to the summary, resumes it, and says in one
line why a module does not fit, or which option takes the run file.

usage: demo_model_test.py --bin DIR --source DIR
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy
import torch


class Flat(torch.nn.Module):
    """Logits of ten classes for the digits that are built in."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(28 * 28, 10)

    def forward(self, x):
        return self.layer(x.flatten(1))


class Detached(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(28 * 28, 10)

    def forward(self, x):
        return self.layer(x.flatten(1)).detach()


RUN = """
name = "own"
[model]
name = "lenet5_caffe"
[data]
name = "mnist"
[train]
local_steps = 2
batch_size = 16
[train.optimizer]
name = "sgd"
learning_rate = 0.05
[codec]
name = "sbc"
density = 0.01
[rounds]
count = {count}
clients = 2
"""


class DemoModelTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="terse-demo-model-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, module):
        torch.jit.script(module).save(self.path(name))
        return self.path(name)

    def start(self, count, *arguments):
        with open(self.path("run.toml"), "w", encoding="utf-8") as file:
            file.write(RUN.format(count=count))
        return subprocess.Popen(
            [f"{OPTIONS.source}/deploy/demo.sh", "--bin", OPTIONS.bin, "--run-file", self.path("run.toml"), "--out",
             self.path("runs"), "--device", "cpu", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def demo(self, count, *arguments):
        process = self.start(count, *arguments)
        said, _ = process.communicate(timeout=240)
        return process.returncode, said

    def test_it_trains_the_module_and_shows_the_summary(self):
        start = Flat()
        code, said = self.demo(3, "--model", self.save("flat.pt", start))
        self.assertEqual(code, 0, said)
        self.assertIn("3/3", said)
        self.assertRegex(said, r"parameters +7850\n")
        with open(self.path("runs/own/summary.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["rounds"], 3)
        trained = torch.jit.load(self.path("runs/own/model.pt"))
        self.assertFalse(torch.equal(trained.layer.weight, start.layer.weight))
        with torch.no_grad():
            self.assertEqual(tuple(trained(torch.rand(2, 1, 28, 28)).shape), (2, 10))
        self.assertIn("layer.weight", numpy.load(self.path("runs/own/model.npz")))
        # The run of one's own that it proposes, word for word.
        own = re.search(r"A run of your own.*\n((?: {4}.*\n)+)", said).group(1)
        answer = subprocess.run(["bash", "-c", own], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=240, check=False)
        self.assertEqual(answer.returncode, 0, f"{own}{answer.stdout}{answer.stderr}")
        self.assertTrue(os.path.exists(self.path("runs/my-run/model.pt")), answer.stdout)

    def test_it_goes_on_where_it_stopped(self):
        arguments = ["--model", self.save("flat.pt", Flat())]
        process = self.start(60, *arguments)
        for line in process.stdout:
            if re.match(r" +3/60 ", line):
                break
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
        self.assertIn("the same command resumes the run", rest)
        code, said = self.demo(60, *arguments)
        self.assertEqual(code, 0, said)
        self.assertIn("resuming the unfinished run", said)
        self.assertIn("60/60", said)
        # Another file is another run.
        code, said = self.demo(60, "--model", self.save("flat.pt", torch.nn.Sequential(torch.nn.Flatten(1), Flat().layer)))
        self.assertEqual(code, 0, said)
        self.assertIn("own-2", said)

    def test_a_module_that_cannot_be_trained_is_refused_in_one_line(self):
        narrow = torch.nn.Sequential(torch.nn.Flatten(1), torch.nn.Linear(16, 10))
        for name, module, why in (("narrow.pt", narrow, "shapes cannot be multiplied"),
                                  ("detached.pt", Detached(), "detached from the parameters")):
            code, said = self.demo(3, "--model", self.save(name, module))
            self.assertEqual(code, 1, said)
            lines = [line for line in said.splitlines() if "does not fit" in line]
            self.assertEqual(len(lines), 1, said)
            self.assertIn(why, lines[0])
            self.assertNotIn("Traceback", said)
        code, said = self.demo(3, "--model", self.path("none.pt"))
        self.assertEqual(code, 1)
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertIn("--model: no file", said)

    def test_a_run_file_that_needs_more_is_refused_before_anything_is_started(self):
        for model, words in (("torchscript", "name its file with --model"), ("external", "docs/PYTHON.md and docs/EXTEND.md do")):
            path = self.path(f"{model}.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(RUN.format(count=3).replace("lenet5_caffe", model))
            code, said = self.demo(3, "--run-file", path)
            self.assertEqual(code, 1, said)
            self.assertEqual(len(said.splitlines()), 1, said)
            self.assertIn(words, said)
            self.assertFalse(os.path.exists(self.path("runs")), said)

    def test_the_run_file_has_an_option_of_its_own(self):
        for script in ("demo.sh", "fleet.sh", "compose/prepare.sh"):
            for words in (["--run", "x.toml"], ["--run=x.toml"]):
                answer = subprocess.run([f"{OPTIONS.source}/deploy/{script}", *words], stdin=subprocess.DEVNULL,
                                        capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(answer.returncode, 1, answer)
                self.assertEqual(answer.stdout, "")
                self.assertEqual(answer.stderr, f"deploy/{script}: there is no option --run; did you mean "
                                                f"'--run-file'? see deploy/{script} --help\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    OPTIONS, rest_of_arguments = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest_of_arguments])
