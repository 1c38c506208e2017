"""The Dockerfile copies all that its build needs, and its images hold programs that there are; Docker is not needed.

usage: dockerfile_test.py SOURCE SCRATCH   (run by ctest)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, SCRATCH = map(pathlib.Path, sys.argv[1:3])


def instructions(path):
    """The instructions of a Dockerfile, each on one line."""
    return re.sub(r" *\\\n *", " ", path.read_text()).splitlines()


def stage(lines, name):
    begin = next(i for i, line in enumerate(lines) if line.endswith(f" AS {name}"))
    rest = lines[begin + 1:]
    return rest[:next((i for i, line in enumerate(rest) if line.startswith("FROM ")), len(rest))]


class Dockerfile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        tree = SCRATCH / "src"
        tree.mkdir(parents=True)
        for line in stage(instructions(SOURCE / "Dockerfile"), "build"):
            words = line.split()
            if words[:1] == ["COPY"]:
                for name in words[1:-1]:
                    os.symlink(SOURCE / name, tree / name)
        done = subprocess.run(["cmake", "--preset", "programs"], cwd=tree, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"what the Dockerfile copies cannot be configured:\n{done.stdout}{done.stderr}")
        said = subprocess.run(["cmake", "--build", "build/programs", "--target", "help"], cwd=tree, capture_output=True,
                              text=True, check=True).stdout
        cls.targets = {line.split(":")[0] for line in said.splitlines()}

    def test_images_hold_programs_that_are_built(self):
        for name in ("Dockerfile", "deploy/cuda.Dockerfile"):
            lines = instructions(SOURCE / name)
            held = set()
            for line in lines:
                programs = set(re.findall(r"build/programs/bin/([a-z-]+)", line))
                self.assertLessEqual(programs, self.targets, f"{name}: {line}")
                if line.startswith("COPY --from=build"):
                    held |= programs
            stripped = {program for line in lines if "strip " in line for program in re.findall(r"bin/([a-z-]+)", line)}
            self.assertEqual(held, stripped, name)
            self.assertIn("terse-simulate", held, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
