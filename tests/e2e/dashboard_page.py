"""A fleet of processes with a dashboard, and a browser that looks at it: what the tests of the page share."""
import glob
import json
import os
import pathlib
import subprocess
import time
import unittest
import urllib.request

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

PATIENCE = 120
OPTIONS = None  # of the command line: .bin and .screenshots


def wait_until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s")


class Processes:
    """Processes that log to files of a folder and end with the test."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}

    def start(self, name, *arguments, **environment):
        with open(f"{self.folder}/{name}.log", "a", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                    env={**os.environ, "OMP_NUM_THREADS": "1", **environment})

    def stop(self, name):
        process = self.processes.pop(name)
        process.terminate()
        process.wait(60)

    def stop_all(self):
        for name in list(self.processes):
            self.stop(name)

    def read_addresses(self, ready):
        wait_until(lambda: os.path.exists(ready), "the coordinator's ready file")
        with open(ready, encoding="utf-8") as file:
            addresses = json.load(file)
        self.listen, self.admin, self.url = addresses["listen"], addresses["admin"], addresses["http"]

    def token(self):
        return pathlib.Path(self.state, "dashboard.token").read_text(encoding="utf-8").strip()

    def tersectl(self, *arguments):
        return subprocess.run([f"{OPTIONS.bin}/tersectl", "--admin", self.admin, *arguments], check=True,
                              capture_output=True, text=True).stdout

    def audit(self):
        return json.loads(self.tersectl("--json", "audit"))

    def api(self, path):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=20) as reply:
            return json.load(reply)

    # A command without a browser, as a program sends it. Returns the HTTP code.
    def post(self, path, body, **headers):
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data=json.dumps(body).encode(), method="POST",
                                         headers={"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code


class Fleet(Processes):
    """A coordinator with several runs, and clients of each."""

    def __init__(self, folder, runs):
        super().__init__(folder)
        self.http = "127.0.0.1:0"
        self.listen = "127.0.0.1:0"
        self.state = f"{folder}/state"
        self.runs = list(runs)
        for name, text in runs.items():
            pathlib.Path(folder, f"{name}.toml").write_text(text, encoding="utf-8")

    def start_coordinator(self):
        ready = f"{self.folder}/ready.json"
        if os.path.exists(ready):
            os.remove(ready)
        files = [argument for name in self.runs for argument in ("--run-file", f"{self.folder}/{name}.toml")]
        self.start("coordinator", f"{OPTIONS.bin}/terse-coordinator", *files, "--state", self.state,
                   "--listen", self.listen, "--http", self.http, "--ready-file", ready)
        self.read_addresses(ready)
        self.http = self.url.removeprefix("http://")

    def start_client(self, name, run):
        self.start(name, f"{OPTIONS.bin}/terse-client", "--coordinator", self.listen, "--run", run, "--name", name, "--state",
                   f"{self.folder}/{name}", "--threads", "1")


class Load(Processes):
    """The load generator's coordinator with so many clients."""

    def __init__(self, folder, clients):
        super().__init__(folder)
        self.clients = clients

    def start_load(self):
        self.start("load", f"{OPTIONS.bin}/terse-bench", "fleet", "--clients", str(self.clients), "--parameters", "20000",
                   "--density", "0.01", "--rounds", "1000000", TMPDIR=str(self.folder))
        ready = wait_until(lambda: glob.glob(f"{self.folder}/*/coordinator.ready.json"), "the load generator's coordinator")[0]
        self.state = f"{os.path.dirname(ready)}/coordinator"
        self.read_addresses(ready)


def open_browser(downloads=None):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-color-profile=srgb"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    if downloads:
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
    return browser


class PageTest(unittest.TestCase):
    """What a person would do with the page, and see on it. `browser` is the class's."""

    @classmethod
    def look(cls, how, height=1480):
        """As on a desktop, a phone, or a desktop whose system is dark."""
        width, height = (390, 2600) if how == "phone" else (1280, height)
        cls.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": how == "phone"})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if how == "dark" else "light"}
        cls.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector):
        self.one(selector).click()

    def text(self, element):
        return self.browser.find_element(By.ID, element).text

    def write(self, element, text):
        field = self.browser.find_element(By.ID, element)
        field.send_keys(Keys.CONTROL + "a", Keys.DELETE)
        field.send_keys(text)

    def choose(self, element, value):
        Select(self.browser.find_element(By.ID, element)).select_by_value(value)

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def points(self, chart, line=0):
        return self.script("return Chart.getChart(arguments[0]).data.datasets[arguments[1]]?.data ?? []", f"chart-{chart}", line)

    def lines(self, chart):
        """Label, colour, mark and dashes of each line."""
        return self.script("return Chart.getChart(arguments[0]).data.datasets.filter((line) => !line.isRaw)"
                           ".map((line) => [line.label, line.borderColor, line.pointStyle, line.borderDash.join()])", f"chart-{chart}")

    def ticks(self, chart, scale):
        return self.script("return Chart.getChart(arguments[0]).scales[arguments[1]].ticks.map((tick) => tick.value)", f"chart-{chart}", scale)

    def range(self, chart, scale="x"):
        return self.script("const scale = Chart.getChart(arguments[0]).scales[arguments[1]]; return [scale.min, scale.max]", f"chart-{chart}", scale)

    def rows(self, table):
        # In one go: the page may write the table anew between two questions.
        return self.script("return [...document.getElementById(arguments[0]).tBodies[0].rows]"
                           ".map((row) => [...row.cells].map((cell) => cell.innerText))", table)

    def column(self, table, number=0):
        return [row[number] for row in self.rows(table)]

    def shown_round(self):
        words = self.text("progress-text").split(" ")
        return int(words[0].replace('\u202f', '')) if words[0] else -1

    def assert_round_steps(self, chart, scale):
        """The ticks are multiples of 1, 2 or 5 times a power of ten."""
        ticks = self.ticks(chart, scale)
        self.assertGreaterEqual(len(ticks), 2, (chart, scale))
        step = ticks[1] - ticks[0]
        while step >= 10 - 1e-6:
            step /= 10
        while step < 1 - 1e-6:
            step *= 10
        self.assertIn(round(step, 6), (1, 2, 5), (chart, scale, ticks))

    def assert_fits(self, how):
        width = self.script("return document.documentElement.clientWidth")
        self.assertEqual(width, 390 if how == "phone" else 1280)
        self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), width, how)

    def picture(self, name, height=1480, of="header"):
        """Looks at the page in three ways, and leaves pictures where the command line says so: on a phone from the element
        `of` on."""
        for how in ("desktop", "phone", "dark"):
            self.look(how, height)
            self.script("if (arguments[1]) document.querySelector(arguments[0]).scrollIntoView(); else scrollTo(0, 0)", of, how == "phone")
            time.sleep(0.7)
            self.assert_fits(how)
            if OPTIONS.screenshots:
                self.browser.save_screenshot(f"{OPTIONS.screenshots}/dashboard-{name}{how}.png")
        self.look("desktop")

    def complaints(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]
