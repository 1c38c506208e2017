"""What is in the Debian packages: every file where Debian looks for it, in one package, with what its programs load.

usage: debian_packages_test.py BUILD SCRATCH   (run by ctest; tests/packages.sh installs and runs them)
"""

import glob
import os
import shutil
import subprocess
import sys
import unittest

BUILD, SCRATCH = sys.argv[1], sys.argv[2]

# For each package: files that must be there, and packages on which it must depend.
EXPECTED = {
    "terse-coordinator": (
        ["usr/bin/terse-coordinator", "usr/lib/systemd/system/terse-coordinator.service",
         "usr/share/terse/coordinator.env", "usr/share/man/man8/terse-coordinator.8", "usr/share/terse/runs/demo.toml", "usr/share/terse/monitoring/alerts.yml"],
        ["adduser", "libopenblas0-openmp", "libtorch1.13", "libgrpc++1.51", "libpq5", "libsqlite3-0"]),
    "terse-client": (
        ["usr/bin/terse-client", "usr/bin/terse-trainer-check", "usr/lib/systemd/system/terse-client.service", "usr/share/terse/client.env",
         "usr/share/man/man8/terse-client.8", "usr/share/man/man1/terse-trainer-check.1"],
        ["adduser", "libgrpc++1.51", "libsqlite3-0"]),
    "terse-client-torch": (["usr/bin/terse-client-torch"], ["terse-client", "libopenblas0-openmp", "libtorch1.13"]),
    "terse-relay": (
        ["usr/bin/terse-relay", "usr/lib/systemd/system/terse-relay.service", "usr/share/terse/relay.env",
         "usr/share/man/man8/terse-relay.8"],
        ["adduser", "libgrpc++1.51", "libsqlite3-0"]),
    "terse-simulate": (["usr/bin/terse-simulate", "usr/share/man/man1/terse-simulate.1"], ["libopenblas0-openmp", "libtorch1.13", "libgrpc++1.51"]),
    "tersectl": (
        ["usr/bin/tersectl", "usr/share/man/man1/tersectl.1", "usr/share/bash-completion/completions/tersectl",
         "usr/share/zsh/vendor-completions/_tersectl"],
        ["libcurl4", "libgrpc++1.51", "libsqlite3-0"]),
    "terse-authority": (
        ["usr/lib/systemd/system/terse-authority.service", "usr/share/terse/authority.env"],
        ["adduser", "tersectl"]),
    "terse-follow": (
        ["usr/lib/systemd/system/terse-follow.service", "usr/share/terse/follow.env"],
        ["adduser", "tersectl"]),
    "libterse-dev": (
        ["usr/lib/cmake/Terse/TerseConfig.cmake", "usr/lib/libterse_compression.a",
         "usr/include/terse/compression/codec_table.h", "usr/include/terse/client/plugin.h"],
        ["libabsl-dev", "libhwy-dev", "libgrpc++-dev", "libprotobuf-dev"]),
}

# The packages with a service, and as whom it runs.
SERVICES = {"terse-coordinator": "terse", "terse-client": "terse", "terse-relay": "terse", "terse-authority": "terse-authority",
            "terse-follow": "terse-follow"}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"'{' '.join(command)}' ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def files_of(package):
    """Paths of the files in it, with modes and owners."""
    rows = [line.split(None, 5) for line in run("dpkg-deb", "--contents", package).splitlines()]
    return {row[5][2:]: (row[0], row[1]) for row in rows if not row[0].startswith("d")}


def dependencies_of(package):
    return {one.strip().split(" ")[0] for one in run("dpkg-deb", "--field", package, "Depends").split(",")}


class DebianPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        run("cpack", "-G", "DEB", "-B", SCRATCH, cwd=BUILD)
        cls.paths = {run("dpkg-deb", "--field", path, "Package").strip(): path
                     for path in glob.glob(os.path.join(SCRATCH, "*.deb"))}
        for folder in ("unpacked", "control"):
            os.mkdir(os.path.join(SCRATCH, folder))
        for name, path in cls.paths.items():
            run("dpkg-deb", "--extract", path, os.path.join(SCRATCH, "unpacked", name))
            run("dpkg-deb", "--control", path, os.path.join(SCRATCH, "control", name))

    def test_these_packages_and_no_others(self):
        self.assertEqual(set(self.paths), set(EXPECTED))

    def test_each_has_its_files(self):
        for name, (files, _) in EXPECTED.items():
            there = files_of(self.paths[name])
            for path in files + [f"usr/share/doc/{name}/copyright"]:
                self.assertIn(path, there, name)

    def test_no_file_is_in_two(self):
        owners = {}
        for name, path in self.paths.items():
            for file in files_of(path):
                self.assertNotIn(file, owners, f"{name} and {owners.get(file)}")
                owners[file] = name

    def test_files_are_roots_and_nobody_elses_to_change(self):
        for name, path in self.paths.items():
            for file, (mode, owner) in files_of(path).items():
                self.assertEqual(owner, "root/root", f"{name}: {file}")
                self.assertEqual(mode[4:].count("w"), 0, f"{name}: {file} is {mode}")
                self.assertEqual("x" in mode, "/bin/" in file, f"{name}: {file} is {mode}")

    def test_each_depends_on_what_it_loads(self):
        for name, (_, wanted) in EXPECTED.items():
            there = dependencies_of(self.paths[name])
            for package in wanted:
                self.assertIn(package, there, name)

    def test_each_program_starts(self):
        for name, path in self.paths.items():
            version = run("dpkg-deb", "--field", path, "Version").partition("-")[0]
            for program in glob.glob(os.path.join(SCRATCH, "unpacked", name, "usr/bin/*")):
                self.assertEqual(run(program, "--version").strip(), version, program)

    def test_a_client_of_a_trainer_of_ones_own_needs_no_libtorch(self):
        self.assertNotIn("libtorch1.13", dependencies_of(self.paths["terse-client"]))

    def test_a_relay_needs_no_libtorch(self):
        self.assertNotIn("libtorch1.13", dependencies_of(self.paths["terse-relay"]))

    def test_services_have_their_scripts(self):
        for name in self.paths:
            for script in ("postinst", "prerm", "postrm"):
                at = os.path.join(SCRATCH, "control", name, script)
                self.assertEqual(os.path.exists(at), name in SERVICES, at)
                if not os.path.exists(at):
                    continue
                run("sh", "-n", at)
                self.assertTrue(os.access(at, os.X_OK), at)
                with open(at, encoding="utf-8") as file:
                    self.assertNotIn("@", file.read().replace("@system", ""), at)

    def test_services_find_their_user_and_their_options(self):
        for name, user in SERVICES.items():
            with open(os.path.join(SCRATCH, "control", name, "postinst"), encoding="utf-8") as file:
                script = file.read()
            with open(os.path.join(SCRATCH, "unpacked", name, f"usr/lib/systemd/system/{name}.service"),
                      encoding="utf-8") as file:
                unit = [line.strip().partition("=")[::2] for line in file]
            self.assertIn(("User", user), unit, name)
            self.assertRegex(script, rf"adduser --system .* {user}\n")
            (options,) = [value[1:] for key, value in unit if key == "EnvironmentFile"]
            self.assertRegex(script, rf"install .* /usr/share{options[4:]} {options}\n")

    def test_units_have_no_mistake_and_are_sealed_off(self):
        for name in SERVICES:
            unit = os.path.join(SCRATCH, "unpacked", name, f"usr/lib/systemd/system/{name}.service")
            run("systemd-analyze", "security", "--offline=yes", "--threshold=25", "--no-pager", unit)
            # The programs are not where they will be.
            said = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit],
                                  capture_output=True, text=True, check=False).stderr
            self.assertEqual([line for line in said.splitlines() if name in line and "not executable" not in line], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
