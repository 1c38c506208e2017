#!/usr/bin/python3
"""The metrics of two clients while they train, while their coordinator is away and after it has come back, compared
with what the coordinator has booked.

usage: client_metrics_test.py --bin DIR --source DIR
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
import unittest

from metered_fleet import MeteredFleet

STEPS = 3
RUN = f"""
name = "metered"
[train]
local_steps = {STEPS}
optimizer.learning_rate = 1.0
[codec]
name = "sbc"
density = 0.02
[rounds]
count = 1000000
clients = 2
"""
# Bytes of an idle connection that are not booked yet: window updates and acknowledgements since the last commit.
UNBOOKED = 300
OPTIONS = None


class ClientMetrics(MeteredFleet):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(f"{cls.folder}/run.toml", "w", encoding="utf-8") as file:
            file.write(RUN)
        cls.start_coordinator("127.0.0.1:0")
        names = ("a", "b")
        clients = {name: cls.start(f"{OPTIONS.bin}/grid-client", "--coordinator", cls.listen, "--name", name, "--state",
                                   f"{cls.folder}/{name}", "--metrics", "127.0.0.1:0", "--reconnect-after", "0.1")
                   for name in names}
        cls.urls = {name: cls.url_in(f"{cls.folder}/{number}.log") for number, name in enumerate(names, start=1)}
        cls.wait(lambda: cls.api("runs/metered")["version"] >= 30, "thirty rounds")
        cls.pause()
        cls.working = cls.scrape_all()
        cls.booked = {client["name"]: client for client in cls.api("runs/metered/clients")["clients"]}
        cls.newest = max(cls.api("runs/metered/rounds")["rounds"], key=lambda r: r["id"] if r["state"] == "committed" else 0)

        cls.processes[0].kill()
        cls.processes[0].wait()
        cls.wait(lambda: all(cls.value_of(of, "connected") == 0 and cls.value_of(of, "retries_total", trouble="connection") > 1
                             for of in cls.scrape_all().values()), "the clients' retries")
        cls.alone = cls.scrape_all()
        cls.start_coordinator(cls.listen)
        cls.ctl("resume")
        cls.wait(lambda: cls.api("runs/metered")["version"] >= cls.newest["id"] + 10, "ten more rounds")
        cls.pause()
        cls.again = cls.scrape_all()
        cls.booked_again = {client["name"]: client for client in cls.api("runs/metered/clients")["clients"]}
        cls.ctl("stop")
        cls.exit_codes = [client.wait(timeout=60) for client in clients.values()]

    @classmethod
    def start_coordinator(cls, listen):
        ready = f"{cls.folder}/ready.json"
        if os.path.exists(ready):
            os.remove(ready)
        cls.start(f"{OPTIONS.bin}/grid-coordinator", "--run-file", f"{cls.folder}/run.toml", "--state", f"{cls.folder}/state",
                  "--listen", listen, "--http", "127.0.0.1:0", "--ready-file", ready)
        cls.wait(lambda: os.path.exists(ready), "the coordinator")
        with open(ready, encoding="utf-8") as file:
            addresses = json.load(file)
        cls.url, cls.listen, cls.admin = addresses["http"], addresses["listen"], addresses["admin"]

    @classmethod
    def ctl(cls, *arguments):
        subprocess.run([f"{OPTIONS.bin}/tersectl", "--admin", cls.admin, *arguments], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def pause(cls):
        """Returns once the last round is booked and the clients have heard of its version."""
        cls.ctl("pause")
        cls.wait(lambda: cls.api("runs/metered/rounds?newest=1")["rounds"][-1]["state"] != "open", "the last round's end")
        cls.wait(lambda: all(cls.value_of(of, "version") == cls.api("runs/metered")["version"]
                             and cls.value_of(of, "update_pending") == 0 for of in cls.scrape_all().values()), "the news")
        time.sleep(1)

    @classmethod
    def url_in(cls, log):
        def found():
            with open(log, encoding="utf-8") as file:
                return re.search(r"metrics: (http://127\.0\.0\.1:[0-9]+)/metrics\n", file.read())
        cls.wait(found, f"the address in {log}")
        return found().group(1)

    @classmethod
    def scrape_all(cls):
        time.sleep(0.6)  # answers are shared for half a second
        return {name: cls.scrape(url) for name, url in cls.urls.items()}

    @staticmethod
    def value_of(scraped, name, **labels):
        return scraped.get((f"terse_client_{name}", tuple(sorted(labels.items()))))

    def compare(self, scraped, booked, trained_before):
        rounds = booked["updates_applied"]
        value = lambda name, **labels: self.value_of(scraped, name, **labels)
        self.assertEqual(value("updates_total", verdict="applied"), rounds)
        self.assertEqual(value("updates_total", verdict="not_applied"), booked["updates_not_applied"])
        self.assertEqual(value("updates_total", verdict="reset"), booked["resets"])
        trained = rounds + booked["updates_not_applied"]
        self.assertEqual(value("rounds_trained_total"), trained)
        self.assertEqual(value("local_steps_total"), STEPS * trained)
        self.assertEqual(value("state_seconds_count", call="Seal"), trained)
        self.assertEqual(value("state_seconds_count", call="Settle"), trained)
        self.assertGreater(trained, trained_before)
        self.assertEqual(value("version"), booked["version"])
        self.assertEqual(value("connected"), 1)
        # With the update that is applied now the coordinator heard of the norm after the verdict before, rounded to quarter
        # powers of two: an eighth for the rounding, and one for what one round changes.
        self.assertGreater(value("residual_norm"), 0)
        self.assertLess(abs(math.log2(booked["residual_norm"] / value("residual_norm"))), 0.25)
        self.assertEqual(booked["device"], f"grid:{booked['index']}")

    def test_a_clients_numbers_are_the_coordinators(self):
        for name in self.urls:
            scraped, booked = self.working[name], self.booked[name]
            self.compare(scraped, booked, 29)
            self.assertEqual(self.value_of(scraped, "connections_total"), 1)
            for trouble in ("connection", "disk"):
                self.assertEqual(self.value_of(scraped, "retries_total", trouble=trouble), 0)
            for way in ("up", "down"):
                counted = self.value_of(scraped, "wire_bytes_total", direction=way)
                self.assertGreater(booked[f"wire_bytes_{way}"], 30 * 40)
                self.assertGreaterEqual(counted, booked[f"wire_bytes_{way}"], f"{name} {way}")
        # Nothing but the news of the last version is unbooked.
        counted = sum(self.value_of(of, "wire_bytes_total", direction="up") for of in self.working.values())
        self.assertLess(counted - sum(of["wire_bytes_up"] for of in self.booked.values()), 2 * UNBOOKED)

    def test_the_loss_is_the_newest_rounds(self):
        losses = [self.value_of(of, "loss") for of in self.working.values()]
        self.assertAlmostEqual(sum(losses) / 2, self.newest["train_loss"], places=5)

    def test_a_coordinator_that_is_away(self):
        for name, scraped in self.alone.items():
            for series in ("rounds_trained_total", "connections_total", "version", "residual_norm", "loss"):
                self.assertEqual(self.value_of(scraped, series), self.value_of(self.working[name], series), series)
            for way in ("up", "down"):
                self.assertGreaterEqual(self.value_of(scraped, "wire_bytes_total", direction=way),
                                        self.value_of(self.working[name], "wire_bytes_total", direction=way))

    def test_a_coordinator_that_has_come_back(self):
        for name, scraped in self.again.items():
            self.compare(scraped, self.booked_again[name], self.value_of(self.working[name], "rounds_trained_total") + 9)
            self.assertEqual(self.value_of(scraped, "connections_total"), 2)
            self.assertGreater(self.value_of(scraped, "wire_bytes_total", direction="up"),
                               self.value_of(self.alone[name], "wire_bytes_total", direction="up"))
        self.assertEqual(self.exit_codes, [0, 0])

    def test_names_are_as_the_field_has_them_and_as_they_are_documented(self):
        self.check_names(self.again["b"])
        names = {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in self.again["b"]}
        with open(f"{OPTIONS.source}/docs/METRICS.md", encoding="utf-8") as file:
            of_client = file.read().partition("\n## Of a client\n")[2]
        self.assertEqual(set(re.findall(r"^\| `(terse_[a-z_]+)`", of_client, re.MULTILINE)), names)
        self.assertLess(sum(1 for name, _ in self.again["b"] if "_bucket" not in name), 60, "series of one client")

    def refusal(self, *arguments):
        ended = subprocess.run([f"{OPTIONS.bin}/grid-client", "--coordinator", self.listen, "--name", "c", "--state",
                                f"{self.folder}/c", *arguments], capture_output=True, timeout=60, check=False)
        return ended.returncode, ended.stderr.decode()

    def test_other_machines_are_refused(self):
        code, said = self.refusal("--metrics", "0.0.0.0:7781")
        self.assertEqual(code, 2)
        self.assertRegex(said, r"--metrics: other machines would read 0\.0\.0\.0:7781 in cleartext: .*127\.0\.0\.1:7781")
        code, said = self.refusal("--metrics", "7781")
        self.assertEqual(code, 2)
        self.assertIn("terse-client: --metrics: '7781' is no address; give HOST:PORT", said)
        self.assertFalse(os.path.exists(f"{self.folder}/c"), "refused before anything is touched")

    def test_a_port_that_is_in_use(self):
        taken = self.url.removeprefix("http://")  # the coordinator's
        code, said = self.refusal("--metrics", taken)
        self.assertEqual(code, 1)
        self.assertIn(f"cannot listen on {taken}: Address already in use; choose another with --metrics", said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the executables")
    parser.add_argument("--source", required=True, help="folder of the repository")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
