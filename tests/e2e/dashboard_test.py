#!/usr/bin/python3
"""The dashboard in a real browser, headless Chromium, while real runs go on.

usage: dashboard_test.py --bin DIR [--screenshots DIR] [--many N]

Starts a coordinator with three runs and their clients on this machine, opens the page and does what a person would: it
follows a run without a reload, compares runs, zooms, saves, steers as an operator, pages and filters. A second fleet is
the load generator's, of 50 clients or, with --many, of N. With --screenshots it leaves pictures of all of that, each on
a desktop, a phone and in the dark.
"""
import argparse
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import dashboard_page
from dashboard_page import Fleet, Load, PageTest, open_browser, wait_until

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
# Of the other runs one sends everything, and the other is evaluated once.
DENSE = (RUN.replace('"digits"', '"digits-dense"').replace('"sbc"\ndensity = 0.01', '"dense"').replace("count = 40", "count = 20")
         .replace("clients = 2", "clients = 1").replace("local_steps = 10", "local_steps = 5"))
ONCE = (RUN.replace('"digits"', '"digits-once"').replace("count = 40", "count = 10").replace("clients = 2", "clients = 1")
        .replace("evaluate_every = 5", "evaluate_every = 10").replace("local_steps = 10", "local_steps = 5"))
RUNS = {"digits": RUN, "digits-dense": DENSE, "digits-once": ONCE}
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CLIENTS = ("berlin-1", "lisbon-2")
OTHERS = {"digits-dense": "oslo-3", "digits-once": "rome-4"}
OPTIONS = None


class Dashboard(PageTest):
    """Tests run in the order of their names, over the runs from their beginning to their end."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.fleet = Fleet(cls.directory.name, RUNS)
        cls.addClassCleanup(cls.fleet.stop_all)
        cls.fleet.start_coordinator()
        cls.saved = pathlib.Path(cls.directory.name, "saved")
        cls.saved.mkdir()
        cls.browser = open_browser(cls.saved)
        cls.addClassCleanup(cls.browser.quit)
        cls.look("desktop")
        cls.browser.get(cls.fleet.url)

    def confirm(self, answer="yes", **fields):
        wait_until(lambda: self.one("#confirm").is_displayed(), "the question")
        for name, value in fields.items():
            field = self.one(f"#confirm [name={name}]")
            field.clear()
            field.send_keys(value)
        self.click(f"#confirm-{answer}")

    def said(self, text):
        wait_until(lambda: text in self.text("command-result"), f"'{text}', not '{self.text('command-result')}'", 20)

    def open_run(self, name):
        def clicked():
            # The list of runs may be drawn anew between the look and the click.
            try:
                self.browser.find_element(By.LINK_TEXT, name).click()
            except StaleElementReferenceException:
                return False
            return True

        wait_until(clicked, f"the link to {name}")
        wait_until(lambda: self.browser.title.split()[1] == name, name)

    def test_01_waits_for_clients(self):
        wait_until(lambda: self.text("phase") == "waiting for clients", "the phase")
        self.assertEqual(self.text("clients-now"), "0 of 0")
        wait_until(lambda: self.text("clients-empty") == "No client has checked in yet.", "the words for no clients")
        self.assertEqual(self.rows("clients"), [])
        self.assertEqual(self.column("runs", 1), list(RUNS))

    def test_02_follows_the_run(self):
        loaded = self.script("return performance.timeOrigin")
        for name in CLIENTS:
            self.fleet.start_client(name, "digits")
        for run, name in OTHERS.items():
            self.fleet.start_client(name, run)
        first = wait_until(lambda: self.shown_round() >= 2 and self.shown_round(), "round 2")
        points = len(self.points("loss"))
        wait_until(lambda: self.shown_round() >= first + 3, "three more rounds")
        wait_until(lambda: len(self.points("loss")) >= points + 3, "three more points")
        wait_until(lambda: len(self.points("accuracy")) >= 1, "an accuracy")
        wait_until(lambda: self.column("clients") == list(CLIENTS), "the clients")
        wait_until(lambda: all(row[9] == "cpu" and re.fullmatch(r"[0-9.]*[1-9][0-9.]*", row[10]) for row in self.rows("clients")),
                   "where they train and their residuals' norms")
        self.assertEqual(self.script("return performance.timeOrigin"), loaded, "the page was loaded again")
        self.assertEqual(self.text("state"), "active")

    def test_03_only_looks_without_the_token(self):
        self.assertFalse(self.one("#pause").is_displayed())
        self.assertIn("dashboard.token on the coordinator's machine", self.text("who"))
        self.click("#log-section summary")
        wait_until(lambda: "Only an operator sees these logs" in self.text("log-empty"), "why there is no log")
        own = {"X-Terse-Request": "1"}
        self.assertEqual(self.fleet.post("runs/digits/pause", {}, **own), 401)
        self.assertEqual(self.fleet.post("runs/digits/pause", {}, **own, **{"X-Terse-Token": "0" * 64}), 401)
        token = {"X-Terse-Token": self.fleet.token()}
        self.assertEqual(self.fleet.post("runs/digits/pause", {}, **token), 403, "without the header of our own pages")
        self.assertEqual(self.fleet.post("runs/digits/pause", {}, **own, **token, Origin="http://evil.example"), 403)
        self.write("token", "0" * 64)
        self.click("#token-form button")
        wait_until(lambda: "the token is not the one in" in self.text("who"), "that the token is wrong")
        self.assertFalse(self.one("#pause").is_displayed())
        self.assertEqual(json.loads(self.fleet.tersectl("--run", "digits", "--json", "status"))["state"], "active")
        self.write("token", self.fleet.token())
        self.click("#token-form button")
        wait_until(lambda: self.one("#pause").is_displayed(), "the buttons")
        self.assertEqual(self.text("who"), "You are an operator (token).")
        self.assertNotIn(self.fleet.token(), self.browser.current_url)

    def test_04_pauses_when_it_is_confirmed(self):
        self.click("#pause")
        self.confirm("no")
        self.said("Nothing was done.")
        self.assertEqual([record for record in self.fleet.audit() if record["result"] == "ok"], [])
        reason = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
        self.click("#pause")
        self.confirm(reason=reason)
        self.said("The run is paused. It is in the audit log.")
        wait_until(lambda: reason in self.text("phase"), "the reason")
        self.assertEqual(self.text("state"), "paused")
        self.assertEqual(self.script("return document.querySelectorAll('img').length"), 0)
        self.assertNotIn("owned", self.browser.title)
        self.click("#resume")
        self.confirm()
        self.said("The run is active.")
        self.fleet.tersectl("--run", "digits", "pause", "--reason", reason)
        button, command = [record for record in self.fleet.audit() if record["action"] == "Pause" and record["result"] == "ok"]
        self.assertEqual((button["who"], button["address"], command["who"]), ("token", "127.0.0.1", "socket"))
        for key in ("action", "run", "detail", "result", "times", "certificate"):
            self.assertEqual(button[key], command[key], key)
        self.assertEqual(button["detail"], reason)
        # Refused calls are written about a second later, those of a kind together.
        refused = wait_until(lambda: [record for record in self.fleet.audit() if record["result"].startswith("UNAUTHENTICATED")], "refusals")
        self.assertEqual({(record["who"], record["action"], record["address"]) for record in refused}, {("cleartext", "Pause", "127.0.0.1")})

    def test_05_comes_back_with_the_coordinator(self):
        self.fleet.stop("coordinator")
        trouble = self.one("#trouble")
        wait_until(trouble.is_displayed, "the trouble")
        self.assertIn("does not answer", trouble.text)
        self.fleet.start_coordinator()
        wait_until(lambda: not trouble.is_displayed(), "the end of the trouble")
        wait_until(lambda: not self.one("#pause").is_displayed(), "the end of the old token")
        self.browser.get(f"{self.fleet.url}/#token={self.fleet.token()}")
        self.browser.refresh()
        wait_until(lambda: self.one("#resume").is_displayed(), "the buttons, by the address")
        self.assertNotIn(self.fleet.token(), self.browser.current_url)
        wait_until(lambda: self.text("state") == "paused", "the run, which is still paused")

    def test_06_sets_a_client_aside_and_aborts_a_round(self):
        wait_until(lambda: self.column("clients") == list(CLIENTS), "the clients")
        self.click("[aria-label='Set aside berlin-1']")
        self.confirm(seconds="600", reason="its disk")
        self.said("berlin-1 is set aside until")
        wait_until(lambda: self.column("clients", 1)[0] == "set aside", "its state", 30)
        self.click("[aria-label='Readmit berlin-1']")
        self.assertIn("its disk", self.text("confirm-text"))
        self.confirm()
        self.said("berlin-1 may take part again.")
        records = [(record["action"], record["detail"]) for record in self.fleet.audit() if record["result"] == "ok"]
        self.assertEqual(records[-2:], [("SetAside", "berlin-1 for 600 s: its disk"), ("SetAside", "readmits berlin-1")])
        self.click("#resume")
        self.confirm()
        self.said("The run is active.")
        wait_until(lambda: self.one("#abort-round").is_enabled(), "an open round")
        self.click("#abort-round")
        self.confirm(reason="once")
        wait_until(lambda: self.text("command-result").startswith(("Round", "Refused")), "what came of it")
        record = self.fleet.audit()[-1]
        self.assertEqual((record["action"], record["run"], record["detail"], record["who"]), ("AbortRound", "digits", "once", "token"))

    def test_07_agrees_with_the_api_at_the_end(self):
        wait_until(lambda: self.text("state") == "finished", "the end of the run")
        wait_until(lambda: len(self.points("accuracy")) == 8, "the last evaluation")
        everything = self.fleet.api("runs/digits/rounds")["rounds"]
        rounds = [r for r in everything if r["state"] == "committed"]
        self.assertEqual(len(rounds), 40)
        evaluated = [r for r in rounds if r["accuracy"] is not None]
        self.assertEqual([p["x"] for p in self.points("accuracy")], [r["id"] for r in evaluated])
        self.assertEqual([p["y"] for p in self.points("accuracy")], [r["accuracy"] for r in evaluated])
        wait_until(lambda: [p["y"] for p in self.points("bytes", 0)] == [r["wire_bytes_up"] for r in rounds], "the bytes up", 20)
        wait_until(lambda: [p["y"] for p in self.points("bytes", 1)] == [r["wire_bytes_down"] for r in rounds], "the bytes down", 20)
        self.assertEqual(self.text("accuracy"), f"{evaluated[-1]['accuracy']:.4f}")
        self.assertGreater(evaluated[-1]["accuracy"], 0.9)

        self.click("input[value=both]")
        sent = sum(r["wire_bytes_up"] + r["wire_bytes_down"] for r in everything if r["id"] <= evaluated[-1]["id"])
        self.assertEqual(self.points("accuracy")[-1]["x"], sent)
        self.assert_round_steps("accuracy", "x")
        self.click("input[value=rounds]")

    def test_08_axes_have_round_ticks(self):
        for chart in ("accuracy", "loss", "bytes", "compression", "duration", "updates"):
            self.assertTrue(all(tick == int(tick) for tick in self.ticks(chart, "x")), self.ticks(chart, "x"))
            self.assert_round_steps(chart, "x")
            self.assert_round_steps(chart, "y")
        self.assertTrue(all(tick == int(tick) for tick in self.ticks("updates", "y")), self.ticks("updates", "y"))

    def test_09_one_tooltip_has_every_line(self):
        canvas = self.one("#chart-loss")
        self.script("arguments[0].scrollIntoView({block: 'center'})", canvas)
        ActionChains(self.browser).move_to_element(canvas).perform()
        shown = wait_until(lambda: self.script(
            "const tooltip = Chart.getChart('chart-loss').tooltip;"
            "return tooltip.opacity > 0 ? [tooltip.title.join(), ...tooltip.body.map((item) => item.lines.join())] : null"), "the tooltip")
        self.assertRegex(shown[0], r"^round \d+$")
        self.assertEqual(len(shown), 3, shown)
        self.assertRegex(shown[1], r"^training: [\d.]+")
        self.assertRegex(shown[2], r"^test: [\d.]+")

    def test_10_zooms_and_smooths(self):
        everything = self.range("loss")
        canvas = self.one("#chart-loss")
        self.script("arguments[0].scrollIntoView({block: 'center'})", canvas)
        ActionChains(self.browser).move_to_element_with_offset(canvas, -60, 0).click_and_hold().move_by_offset(120, 0).release().perform()
        zoomed = self.range("loss")
        self.assertLess(zoomed[1] - zoomed[0], 0.6 * (everything[1] - everything[0]))
        self.assertEqual(self.range("bytes"), zoomed, "all charts show the same")
        self.click("#zoom-right")
        self.assertGreater(self.range("loss")[0], zoomed[0])
        self.click("#zoom-all")
        self.assertEqual(self.range("loss"), everything)
        self.assertFalse(self.one("#zoom-all").is_enabled())
        ActionChains(self.browser).key_down(Keys.SHIFT).scroll_from_origin(ScrollOrigin.from_element(canvas), 0, -120).key_up(Keys.SHIFT).perform()
        wait_until(lambda: self.range("loss") != everything, "the wheel's zoom", 10)
        ActionChains(self.browser).double_click(canvas).perform()
        self.assertEqual(self.range("loss"), everything)

        raw = self.points("loss")
        slider = self.one("#smoothing")
        slider.send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 30)
        self.assertEqual(self.text("smoothing-text"), "0.60")
        mean, weight = 0.0, 0.0
        for point, smooth in zip(raw, self.points("loss")):
            mean, weight = 0.6 * mean + 0.4 * point["y"], 0.6 * weight + 0.4
            self.assertAlmostEqual(smooth["y"], mean / weight, places=9)
        self.assertEqual(self.points("loss", 2), raw, "faint behind it")
        slider.send_keys(Keys.HOME)
        self.assertEqual(self.points("loss"), raw)

    def test_11_compares_three_runs(self):
        for name in OTHERS:
            wait_until(lambda name=name: self.fleet.api(f"runs/{name}")["state"] == "finished", name)
            self.click(f"[aria-label='Compare {name}']")
        wait_until(lambda: len(self.lines("accuracy")) == 3, "three curves")
        wait_until(lambda: [len(self.points("accuracy", i)) for i in range(3)] == [8, 4, 1], "all their points")
        self.assertEqual([line[0] for line in self.lines("accuracy")], list(RUNS))
        for chart in ("accuracy", "loss", "bytes"):
            looks = self.lines(chart)
            self.assertEqual(len({tuple(line[1:]) for line in looks}), len(looks), looks)
            self.assertEqual(len({line[2] for line in looks}), 3, "marks are told apart without colours")
        self.assertIn("&with=digits-dense&with=digits-once", self.browser.current_url)
        self.assertIn("The charts show 3 runs", self.text("compared-text"))
        self.assertEqual([item.text for item in self.browser.find_elements(By.CSS_SELECTOR, "#legend li")], list(RUNS))
        for row, run in zip(self.rows("runs"), self.fleet.api("runs")["runs"]):
            self.assertEqual(row[1:4], [run["name"], "finished", f"{run['version']} of {run['rounds_total']}"])
            self.assertEqual(row[4], f"{run['accuracy']:.4f}" if run.get("accuracy") is not None else "–")
        self.click("input[value=both]")
        self.assertGreater(self.points("accuracy", 1)[-1]["x"], 10 * self.points("accuracy", 0)[-1]["x"], "dense costs more")
        self.click("input[value=rounds]")
        self.picture("three-", of="#compared")

    def test_12_the_configuration_marks_what_differs(self):
        self.click("#settings-section summary")
        rows = {row[0]: row[1:] for row in self.rows("settings")}
        self.assertEqual(rows["≠ codec.name"], ["sbc", "dense", "sbc"])
        self.assertEqual(rows["≠ rounds.count"], ["40", "20", "10"])
        self.assertEqual(rows["model.name"], ["lenet5_caffe"] * 3)
        self.click("#settings-differ")
        self.assertTrue(all(row[0].startswith("≠ ") for row in self.rows("settings")))
        self.write("settings-filter", "nothing has this")
        self.assertEqual(self.text("settings-empty"), "No key or value contains “nothing has this”.")

    def test_13_one_evaluation_is_visible(self):
        self.open_run("digits-once")
        for name in ("digits", "digits-dense"):
            self.click(f"[aria-label='Compare {name}']")
        wait_until(lambda: len(self.lines("accuracy")) == 1, "one curve")
        at = self.script("const chart = Chart.getChart('chart-accuracy'), [point] = chart.getDatasetMeta(0).data, area = chart.chartArea;"
                         "return [(point.x - area.left) / area.width, (point.y - area.top) / area.height, point.options.radius]")
        self.assertGreater(at[2], 2)
        self.assertTrue(0 < at[0] <= 1 and 0.1 < at[1] < 0.9, at)
        low, high = self.range("accuracy", "y")
        self.assertLessEqual(high, 1)
        self.assertTrue(0.05 < high - low < 0.5, (low, high))
        self.assertGreaterEqual(len(self.ticks("accuracy", "y")), 3)
        self.picture("once-")

    def test_14_saves_rounds_and_model(self):
        self.open_run("digits")
        self.click("#save-rounds")
        file = self.saved / "digits-rounds.csv"
        wait_until(file.exists, "the rounds", 20)
        self.assertEqual(file.read_text(encoding="utf-8"), self.fleet.tersectl("--run", "digits", "rounds", "--csv"))
        self.choose("model-format", "npz")
        self.click("#save-model")
        self.said("digits.npz was made.")
        wait_until((self.saved / "digits.npz").exists, "the model", 20)
        self.fleet.tersectl("--run", "digits", "export", "--format", "npz", "--out", f"{self.directory.name}/out")
        exported = next(pathlib.Path(self.directory.name, "out").glob("**/*.npz"))
        self.assertEqual((self.saved / "digits.npz").read_bytes(), exported.read_bytes())
        button, command = [record for record in self.fleet.audit() if record["action"] == "Export"]
        self.assertEqual((button["who"], button["detail"], button["run"]), ("token", command["detail"], "digits"))

    def test_15_shows_the_logs(self):
        if not self.one("#log-section").get_attribute("open"):
            self.click("#log-section summary")
        wait_until(lambda: any("terse-coordinator" in row[-1] for row in self.rows("log")), "the first line")
        self.write("log-filter", "nothing has this")
        self.assertRegex(self.text("log-empty"), "None of the [0-9]+ newest lines contains “nothing has this”.")
        self.write("log-filter", "")
        self.click("input[value=audit]")
        wait_until(lambda: any(row[3] == "AbortRound" for row in self.rows("log")), "the audit log")
        self.click("input[value=log]")

    def test_16_events_are_filtered(self):
        wait_until(lambda: "client joined" in self.column("events", 3), "events")
        self.write("event-kind", "client joined")
        wait_until(lambda: set(self.column("events", 3)) == {"client joined"}, "one kind")
        self.write("event-client", "BERLIN")
        wait_until(lambda: set(self.column("events", 2)) == {"berlin-1"}, "one client")
        self.write("event-client", "nobody")
        wait_until(lambda: self.text("events-empty") ==
                   "None of the events that are kept is of the kind “client joined” and is about a client whose name contains “nobody”.",
                   "the words for none")
        self.write("event-kind", "")
        self.write("event-client", "")
        wait_until(lambda: "run ended" in self.column("events", 3), "all events")

    def test_17_the_table_sorts_and_filters(self):
        wait_until(lambda: self.column("clients", 1) == ["away", "away"], "clients that have left")
        self.click("#clients th button")
        wait_until(lambda: self.column("clients") == list(reversed(CLIENTS)), "the order", 10)
        self.write("filter", "BERLIN")
        wait_until(lambda: self.column("clients") == ["berlin-1"], "the filter", 10)
        self.assertEqual(self.text("clients-count"), "1 of 2")
        self.write("filter", "nobody")
        wait_until(lambda: self.text("clients-empty") == "None of the 2 clients is one whose name contains “nobody”.", "the words", 10)
        self.write("filter", "")
        self.click("#clients th button")
        wait_until(lambda: self.column("clients") == list(CLIENTS), "all again", 10)
        client = self.fleet.api("runs/digits/clients")["clients"][0]
        self.assertEqual(self.rows("clients")[0][5], str(client["updates_applied"]))
        self.assertEqual(client["updates_applied"], 40)
        self.assertEqual(self.rows("clients")[0][9:11], ["–", "–"])  # nobody knows of a client that is away

    def test_18_fits_a_phone_and_the_dark(self):
        background = lambda: self.script("return getComputedStyle(document.body).backgroundColor")
        light = background()
        self.script("for (const one of document.querySelectorAll('details')) one.open = false")
        self.picture("")
        for how in ("desktop", "phone", "dark"):
            self.look(how)
            time.sleep(0.5)
            self.assertEqual(background() == light, how != "dark")
            for chart in ("loss", "bytes", "compression", "duration"):
                looks = self.lines(chart)
                for what in (1, 2, 3):
                    self.assertEqual(len({line[what] for line in looks}), len(looks), f"lines of {chart} are told apart: {looks}")
            hint = self.one("#clients-title ~ .scroll + .wide")
            self.assertEqual(hint.is_displayed(), how == "phone")
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

    def test_19_is_for_the_keyboard_and_the_ear_too(self):
        wait_until(lambda: self.text("state") == "finished", "the page")
        nameless = self.script("""return [...document.querySelectorAll('button, input, select, canvas, progress, [tabindex]')].filter((one) =>
            !(one.textContent.trim() || one.ariaLabel || one.title || one.labels?.length ||
              document.getElementById(one.getAttribute('aria-labelledby'))?.textContent.trim())).map((one) => one.outerHTML)""")
        self.assertEqual(nameless, [])
        self.script("document.querySelector('#zoom-in').focus()")
        everything = self.range("loss")
        ActionChains(self.browser).send_keys(Keys.ENTER).perform()
        self.assertNotEqual(self.range("loss"), everything)
        self.assertNotEqual(self.script("return getComputedStyle(document.activeElement).outlineStyle"), "none")
        self.click("#zoom-all")

    def test_20_asks_nobody_else_and_complains_of_nothing(self):
        origins = self.script(
            "return [...new Set(performance.getEntriesByType('resource').map((entry) => new URL(entry.name).origin))]")
        self.assertEqual([origin for origin in origins if origin not in (self.fleet.url, "null")], [])
        # That the coordinator was away is the one thing to complain of.
        self.assertEqual([text for text in self.complaints() if "ERR_CONNECTION_REFUSED" not in text], [])


class ManyClients(PageTest):
    """The load generator's fleet: the coordinator sorts, filters and pages its clients."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.many = OPTIONS.many
        cls.fleet = Load(cls.directory.name, cls.many)
        cls.addClassCleanup(cls.fleet.stop_all)
        cls.fleet.start_load()
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)
        cls.look("desktop")
        cls.browser.get(f"{cls.fleet.url}/#load&token={cls.fleet.token()}")

    def names(self, numbers):
        return [f"client-{number}" for number in numbers]

    def test_1_shows_a_page_of_them(self):
        wait_until(lambda: self.text("clients-now") == f"{self.many} of {self.many}", "all clients", 300)
        wait_until(lambda: len(self.points("bytes")) >= 20, "some rounds", 300)
        # What follows is about the page, and a run that waits leaves the processors to it.
        self.click("#pause")
        self.click("#confirm-yes")
        wait_until(lambda: self.text("state") == "paused", "the pause")
        wait_until(lambda: self.column("clients") == self.names(range(50)), "the first page, by name")
        self.assertEqual(self.text("clients-count"), str(self.many))
        pages = -(-self.many // 50)
        self.assertEqual(self.text("page"), f"page 1 of {pages}")
        self.assertEqual(self.one("#next").is_enabled(), pages > 1)

    def test_2_sorts_and_filters_them(self):
        self.click("#clients th button")
        wait_until(lambda: self.column("clients") == self.names(range(self.many - 1, self.many - 51, -1)), "backwards")
        self.write("filter", "CLIENT-4")
        fits = [number for number in range(self.many) if str(number).startswith("4")]
        wait_until(lambda: self.column("clients") == self.names(sorted(fits, reverse=True)[:50]), "those with a 4")
        self.assertEqual(self.text("clients-count"), f"{len(fits)} of {self.many}")
        state = self.column("clients", 1)[0]
        self.choose("client-state", state)
        wait_until(lambda: set(self.column("clients", 1)) == {state}, "one state")
        self.choose("client-state", "")
        self.write("filter", "")
        self.click("#clients th button")
        wait_until(lambda: self.column("clients") == self.names(range(50)), "all again")
        for column, key in (("Up", "wire_bytes_up"), ("Last seen", "last_seen_us")):
            self.browser.find_element(By.XPATH, f"//table[@id='clients']//button[text()='{column}']").click()
            sort, order = ("up", "ascending") if column == "Up" else ("last_seen", "descending")
            wanted = self.fleet.api(f"runs/load/clients?count=50&sort={sort}&order={order}")["clients"]
            wait_until(lambda: self.column("clients") == [client["name"] for client in wanted], f"by {column}")
            keys = [client[key] for client in wanted]
            self.assertEqual(keys, sorted(keys, reverse=order == "descending"))
        self.click("#clients th button")

    def test_3_turns_pages(self):
        wait_until(lambda: self.column("clients") == self.names(range(50)), "the first page")
        if self.many > 50:
            self.click("#next")
            wait_until(lambda: self.column("clients") == self.names(range(50, min(100, self.many))), "the second page")
            self.click("#previous")
            wait_until(lambda: self.column("clients") == self.names(range(50)), "the first page again")
        # The page learns of the run's state before it learns of the event.
        wait_until(lambda: self.column("events", 3)[0] == "run paused", "the pause among the events")
        seen = [self.column("events", 2)]
        self.assertEqual(len(seen[0]), 50)
        for number in (2, 3):
            if not self.one("#events-older").is_enabled():
                break
            self.click("#events-older")
            wait_until(lambda number=number: self.text("events-page") == f"page {number}", "an older page", 20)
            seen.append(self.column("events", 2))
        self.assertGreaterEqual(len(seen), 2)
        joined = [name for page in seen for name in page if name]
        self.assertEqual(len(joined), len(set(joined)), "no event is on two pages")
        if self.many == 50:
            self.assertEqual(self.column("events", 3)[-1], "run created")
        self.click("#events-newer")
        wait_until(lambda: self.column("events", 2) == seen[-2], "the page before")

    def test_4_an_answer_is_as_large_as_its_page(self):
        whole = self.fleet.api("runs/load/clients")
        page = self.fleet.api("runs/load/clients?first=1&count=50")
        self.assertEqual((len(whole["clients"]), len(page["clients"])), (self.many, min(50, self.many)))
        self.assertEqual((page["known"], page["found"]), (self.many, self.many))
        largest = self.script("return Math.max(...performance.getEntriesByType('resource')"
                              ".filter((entry) => entry.name.includes('/clients')).map((entry) => entry.decodedBodySize))")
        self.assertLess(largest, 60 * 900, "bytes of the clients' answers: 50 rows, or 60 at work")

    def test_5_fits_a_phone_and_the_dark(self):
        self.picture(f"{self.many}-", height=2300, of="#clients-title")
        self.assertEqual(self.complaints(), [])


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
    parser.add_argument("--many", type=int, default=50, help="clients of the load generator, 50 or more")
    OPTIONS, rest = parser.parse_known_args()
    dashboard_page.OPTIONS = OPTIONS
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
