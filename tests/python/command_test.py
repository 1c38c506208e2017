"""The command `terse` becomes the program that does the work, and says what to install where that is not there.

usage: command_test.py BIN     (run by ctest)
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

import terse
from fleet import SOURCE, environment

BIN = pathlib.Path(sys.argv.pop(1))
RUN_FILE = """
name = "small"
[model]
name = "perceptron"
inputs = 784
[data]
name = "mnist"
[train]
local_steps = 2
batch_size = 16
optimizer = { learning_rate = 0.003 }
[codec]
name = "sbc"
[rounds]
count = 2
clients = 3
"""


def entry_point():
    """What the wheel's `terse` calls, as an installer makes it of pyproject.toml."""
    scripts = tomllib.loads((SOURCE / "python" / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["terse"].partition(":")
    return f"import sys; from {module} import {function}; sys.exit({function}())"


def command(*words, **variables):
    env = {**environment(BIN), **variables}
    return subprocess.run([sys.executable, "-c", entry_point(), *map(str, words)], capture_output=True, text=True, env=env,
                          check=False)


class Command(unittest.TestCase):
    def test_simulate_passes_everything_on(self):
        with tempfile.TemporaryDirectory(prefix="terse-command-") as folder:
            run_file = pathlib.Path(folder) / "run.toml"
            run_file.write_text(RUN_FILE)
            done = command("simulate", "--clients", 4, "--processes", 2, run_file, "--json", "--state", f"{folder}/state")
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
        self.assertEqual((result["fleet"], result["rounds"], len(result["client_processes_memory_kib"])), (4, 2, 2))

    def test_its_words_and_its_exit_code_are_the_programs(self):
        done = command("simulate", "no_such.toml")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no_such.toml", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertTrue(command("simulate", "--help").stdout.startswith("Simulates a large fleet on this machine"))

    def test_without_the_program(self):
        with tempfile.TemporaryDirectory() as empty:
            done = command("simulate", "run.toml", TERSE_BIN=empty, PATH=empty)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "terse: there is no terse-simulate: neither in this package, nor in TERSE_BIN, nor in "
                                      "PATH; install the Debian package terse-simulate, or name the folder with the built "
                                      "programs in TERSE_BIN\n")

    def test_version_help_and_mistakes(self):
        self.assertEqual(command("--version").stdout, terse.__version__ + "\n")
        self.assertIn("usage: terse simulate", command("--help").stdout)
        for words, said in (((), "a command is missing"), (("train",), "'train' is no command")):
            done = command(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"terse: {said}\nusage: terse simulate", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
