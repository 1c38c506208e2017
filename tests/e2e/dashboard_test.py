#!/usr/bin/python3
"""The dashboard in a real browser, headless Chromium, while a real run goes on.

usage: dashboard_test.py --bin DIR [--screenshots DIR]

Starts a coordinator and two clients on this machine, opens the page and checks what a person would see: that it follows
the run without a reload, that it agrees with the API, that it fits a phone and the dark, that texts stay texts, and
that it comes back when the coordinator does. With --screenshots it leaves dashboard-desktop.png, dashboard-phone.png
and dashboard-dark.png, taken at the end of the run.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

RUN = """
name = "digits"
[model]
name = "lenet5_caffe"
[data]
name = "mnist"
[train]
local_steps = 10
batch_size = 64
optimizer.name = "adam"
optimizer.learning_rate = 0.001
[codec]
name = "sbc"
density = 0.01
[rounds]
count = 40
clients = 2
evaluate_every = 5
"""
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CLIENTS = ("berlin-1", "lisbon-2")
PATIENCE = 120
OPTIONS = None


def wait_until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s")


class Fleet:
    """A coordinator and its clients, as processes, in a folder of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}
        self.http = "127.0.0.1:0"
        self.listen = "127.0.0.1:0"
        with open(f"{folder}/run.toml", "w", encoding="utf-8") as file:
            file.write(RUN)

    def start(self, name, *arguments):
        with open(f"{self.folder}/{name}.log", "a", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                    env={**os.environ, "OMP_NUM_THREADS": "1"})

    def start_coordinator(self):
        ready = f"{self.folder}/ready.json"
        if os.path.exists(ready):
            os.remove(ready)
        self.start("coordinator", f"{OPTIONS.bin}/terse-coordinator", "--run-file", f"{self.folder}/run.toml", "--state",
                   f"{self.folder}/state", "--listen", self.listen, "--http", self.http, "--ready-file", ready)
        wait_until(lambda: os.path.exists(ready), "the coordinator's ready file")
        with open(ready, encoding="utf-8") as file:
            addresses = json.load(file)
        self.listen, self.admin, self.url = addresses["listen"], addresses["admin"], addresses["http"]
        self.http = self.url.removeprefix("http://")

    def start_client(self, name):
        self.start(name, f"{OPTIONS.bin}/terse-client", "--coordinator", self.listen, "--name", name, "--state",
                   f"{self.folder}/{name}", "--threads", "1")

    def stop(self, name):
        process = self.processes.pop(name)
        process.terminate()
        process.wait(60)

    def stop_all(self):
        for name in list(self.processes):
            self.stop(name)

    def tersectl(self, *arguments):
        return subprocess.run([f"{OPTIONS.bin}/tersectl", "--admin", self.admin, *arguments], check=True,
                              capture_output=True, text=True).stdout

    def api(self, path):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=20) as reply:
            return json.load(reply)


def open_browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-color-profile=srgb"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class Dashboard(unittest.TestCase):
    """Tests run in the order of their names, over one run from its beginning to its end."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.fleet = Fleet(cls.directory.name)
        cls.addClassCleanup(cls.fleet.stop_all)
        cls.fleet.start_coordinator()
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)
        cls.look("desktop")
        cls.browser.get(cls.fleet.url)

    @classmethod
    def look(cls, how):
        """As on a desktop, a phone, or a desktop whose system is dark."""
        width, height = (390, 2600) if how == "phone" else (1280, 1480)
        cls.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": how == "phone"})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if how == "dark" else "light"}
        cls.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def text(self, element):
        return self.browser.find_element(By.ID, element).text

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def points(self, chart, line=0):
        return self.script("return Chart.getChart(arguments[0]).data.datasets[arguments[1]].data", f"chart-{chart}", line)

    def shown_round(self):
        words = self.text("progress-text").split()
        return int(words[0]) if words else -1

    def rows(self, table):
        # In one go: the page may write the table anew between two questions.
        return self.script("return [...document.getElementById(arguments[0]).tBodies[0].rows]"
                           ".map((row) => [...row.cells].map((cell) => cell.innerText))", table)

    def test_1_waits_for_clients(self):
        wait_until(lambda: self.text("phase") == "waiting for clients", "the phase")
        self.assertEqual(self.text("clients-now"), "0 of 0")
        self.assertEqual(self.rows("clients"), [])

    def test_2_follows_the_run(self):
        loaded = self.script("return performance.timeOrigin")
        for name in CLIENTS:
            self.fleet.start_client(name)
        first = wait_until(lambda: self.shown_round() >= 2 and self.shown_round(), "round 2")
        points = len(self.points("loss"))
        wait_until(lambda: self.shown_round() >= first + 3, "three more rounds")
        wait_until(lambda: len(self.points("loss")) >= points + 3, "three more points")
        wait_until(lambda: len(self.points("accuracy")) >= 1, "an accuracy")
        wait_until(lambda: [row[0] for row in self.rows("clients")] == list(CLIENTS), "the clients")
        wait_until(lambda: all(row[9] == "cpu" and re.fullmatch(r"[0-9.]*[1-9][0-9.]*", row[10]) for row in self.rows("clients")),
                   "where they train and their residuals' norms")
        self.assertEqual(self.script("return performance.timeOrigin"), loaded, "the page was loaded again")
        self.assertEqual(self.text("state"), "active")

    def test_3_texts_stay_texts(self):
        reason = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
        self.fleet.tersectl("pause", "--reason", reason)
        wait_until(lambda: reason in self.text("phase"), "the reason")
        self.assertEqual(self.text("state"), "paused")
        self.assertEqual(self.script("return document.querySelectorAll('img').length"), 0)
        self.assertNotIn("owned", self.browser.title)

    def test_4_comes_back_with_the_coordinator(self):
        self.fleet.stop("coordinator")
        trouble = self.browser.find_element(By.ID, "trouble")
        wait_until(trouble.is_displayed, "the trouble")
        self.assertIn("does not answer", trouble.text)
        self.fleet.start_coordinator()
        wait_until(lambda: not trouble.is_displayed(), "the end of the trouble")
        self.fleet.tersectl("resume")
        wait_until(lambda: self.text("state") == "active", "the run")

    def test_5_agrees_with_the_api_at_the_end(self):
        wait_until(lambda: self.text("state") == "finished", "the end of the run")
        wait_until(lambda: len(self.points("accuracy")) == 8, "the last evaluation")
        rounds = [r for r in self.fleet.api("runs/digits/rounds")["rounds"] if r["state"] == "committed"]
        self.assertEqual(len(rounds), 40)
        evaluated = [r for r in rounds if r["accuracy"] is not None]
        self.assertEqual([p["x"] for p in self.points("accuracy")], [r["id"] for r in evaluated])
        self.assertEqual([p["y"] for p in self.points("accuracy")], [r["accuracy"] for r in evaluated])
        self.assertEqual([p["y"] for p in self.points("bytes", 0)], [r["wire_bytes_up"] for r in rounds])
        self.assertEqual([p["y"] for p in self.points("bytes", 1)], [r["wire_bytes_down"] for r in rounds])
        self.assertEqual(self.text("accuracy"), f"{evaluated[-1]['accuracy']:.4f}")
        self.assertGreater(evaluated[-1]["accuracy"], 0.9)

        self.browser.find_element(By.CSS_SELECTOR, "input[value=both]").click()
        sent = sum(r["wire_bytes_up"] + r["wire_bytes_down"] for r in rounds[:evaluated[-1]["id"]])
        self.assertEqual(self.points("accuracy")[-1]["x"], sent)
        self.browser.find_element(By.CSS_SELECTOR, "input[value=rounds]").click()

    def test_6_the_table_sorts_and_filters(self):
        wait_until(lambda: all(row[1] == "away" for row in self.rows("clients")), "clients that have left")
        self.browser.find_element(By.CSS_SELECTOR, "#clients th button").click()
        self.assertEqual([row[0] for row in self.rows("clients")], list(reversed(CLIENTS)))
        self.browser.find_element(By.ID, "filter").send_keys("BERLIN")
        self.assertEqual([row[0] for row in self.rows("clients")], ["berlin-1"])
        self.assertEqual(self.text("clients-count"), "1 of 2")
        self.browser.find_element(By.ID, "filter").send_keys(Keys.CONTROL + "a", Keys.DELETE)
        self.browser.find_element(By.CSS_SELECTOR, "#clients th button").click()
        client = self.fleet.api("runs/digits/clients")["clients"][0]
        self.assertEqual(self.rows("clients")[0][5], str(client["updates_applied"]))
        self.assertEqual(client["updates_applied"], 40)
        self.assertEqual(self.rows("clients")[0][9:11], ["–", "–"])  # nobody knows of a client that is away
        kinds = [row[3] for row in self.rows("events")]
        self.assertIn("client joined", kinds)
        self.assertIn("run created", kinds)

    def test_7_fits_a_phone_and_the_dark(self):
        background = lambda: self.script("return getComputedStyle(document.body).backgroundColor")
        light = background()
        for how in ("desktop", "phone", "dark"):
            self.look(how)
            time.sleep(1.5)
            width = self.script("return document.documentElement.clientWidth")
            self.assertEqual(width, 390 if how == "phone" else 1280)
            self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), width, how)
            self.assertEqual(background() == light, how != "dark")
            for chart in ("loss", "bytes", "compression", "duration"):
                colours = self.script("return Chart.getChart(arguments[0]).data.datasets.map((line) => line.borderColor)",
                                      f"chart-{chart}")
                self.assertEqual(len(set(colours)), len(colours), f"lines of {chart} are told apart: {colours}")
            if OPTIONS.screenshots:
                self.browser.save_screenshot(f"{OPTIONS.screenshots}/dashboard-{how}.png")
        grid = "return Chart.getChart('chart-loss').options.scales.x.grid.color"
        dark_grid = self.script(grid)
        button = self.browser.find_element(By.ID, "theme")
        button.click()
        self.assertEqual((button.text, background()), ("Theme: light", light))
        self.assertNotEqual(self.script(grid), dark_grid)
        button.click()
        self.assertNotEqual(background(), light)
        self.browser.refresh()
        self.assertEqual(self.text("theme"), "Theme: dark")

    def test_8_asks_nobody_else_and_complains_of_nothing(self):
        wait_until(lambda: self.text("state") == "finished", "the page")
        origins = self.script(
            "return [...new Set(performance.getEntriesByType('resource').map((entry) => new URL(entry.name).origin))]")
        self.assertEqual([origin for origin in origins if origin not in (self.fleet.url, "null")], [])
        # That the coordinator was away is the one thing to complain of.
        complaints = [entry["message"] for entry in self.browser.get_log("browser")
                      if "ERR_CONNECTION_REFUSED" not in entry["message"]]
        self.assertEqual(complaints, [])


class MetricsByName(unittest.TestCase):
    """A run whose clients are Python programs that report metrics of their own."""

    def test_their_chart_shows_the_one_that_is_chosen(self):
        sys.path[:0] = [str(SOURCE / "tests/python"), str(SOURCE / "python")]
        os.environ["TERSE_BIN"] = str(pathlib.Path(OPTIONS.bin).resolve())
        import metric_member
        import numpy
        import terse
        from fleet import Fleet as PythonFleet

        browser = open_browser()
        self.addCleanup(browser.quit)
        with PythonFleet(pathlib.Path(OPTIONS.bin).resolve()) as fleet:
            fleet.start_coordinator("--http", "127.0.0.1:0")
            model = {name: numpy.zeros(shape, dtype=numpy.float32) for name, shape in metric_member.SHAPES.items()}
            run = terse.Run("metrics", model=model, codec=terse.codecs.dense(), rounds=5, clients=1)
            run.create(str(fleet.folder / "run"), admin=fleet.admin)
            browser.get(json.loads((fleet.folder / "ready-1").read_text())["http"])
            chart = browser.find_element(By.ID, "metrics")
            wait_until(lambda: browser.find_element(By.ID, "state").text == "active", "the run")
            self.assertFalse(chart.is_displayed())
            fleet.python("m4", "metric_member.py", fleet.address, fleet.folder / "m4", 4)
            wait_until(chart.is_displayed, "the chart")
            points = lambda: browser.execute_script("return Chart.getChart('chart-metric').data.datasets[0].data.map((p) => [p.x, p.y])")
            wait_until(lambda: len(points()) == 5, "five points")
            offered = [option.text for option in browser.find_elements(By.CSS_SELECTOR, "#metric option")]
            self.assertEqual(offered, ["evaluation accuracy", "evaluation worst class", "training grad_norm"])
            self.assertEqual(points(), [[number, 0.4] for number in range(1, 6)])
            browser.find_element(By.CSS_SELECTOR, "#metric option:last-child").click()
            self.assertEqual(points(), [[number, 4.0 * number] for number in range(1, 6)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the executables")
    parser.add_argument("--screenshots", help="folder for the pictures")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
