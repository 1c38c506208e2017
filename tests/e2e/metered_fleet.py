"""Processes of one fleet in a folder, and what they serve over HTTP, read by an independent parser."""
import json
import subprocess
import tempfile
import time
import unittest
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

PATIENCE = 120


class MeteredFleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.folder = directory.name
        cls.processes = []
        cls.addClassCleanup(lambda: [process.kill() or process.wait() for process in cls.processes])

    @classmethod
    def start(cls, *command):
        """Its process; what it prints is in {folder}/{number}.log, of the first one 0.log."""
        with open(f"{cls.folder}/{len(cls.processes)}.log", "w", encoding="utf-8") as log:
            cls.processes.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        return cls.processes[-1]

    @staticmethod
    def wait(condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {PATIENCE} s")
            time.sleep(0.1)

    @staticmethod
    def get(url):
        with urllib.request.urlopen(url, timeout=20) as reply:
            return reply.read().decode(), reply.headers["Content-Type"]

    @classmethod
    def api(cls, path):
        return json.loads(cls.get(f"{cls.url}/api/v1/{path}")[0])

    @classmethod
    def scrape(cls, url):
        """Values by name and labels; the type and help of each family."""
        text, cls.content_type = cls.get(f"{url}/metrics")
        families = list(text_string_to_metric_families(text))
        cls.types = {family.name: family.type for family in families}
        cls.helps = {family.name: family.documentation for family in families}
        return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for family in families for sample in family.samples}

    def check_names(self, sampled):
        """That those of the newest scrape are as the field has them."""
        self.assertEqual(self.content_type, "text/plain; version=0.0.4; charset=utf-8")
        for name, kind in self.types.items():
            self.assertRegex(name, r"^terse_[a-z_]+$")
            self.assertTrue(self.helps[name], name)
            if kind == "histogram":
                self.assertRegex(name, r"_seconds$")
        for name in {name for name, _ in sampled}:
            if self.types.get(name.removesuffix("_total")) == "counter":
                self.assertRegex(name, r"_total$")
