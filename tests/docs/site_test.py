"""The site of the documentation: it builds without a warning, every link and anchor leads somewhere, and a browser that
reads it asks nothing of other hosts, draws the pictures and finds what is searched for.

usage: site_test.py SOURCE   (run by ctest; ends with 77 where packages are missing)
"""

import functools
import http.server
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

SOURCE = pathlib.Path(sys.argv[1]).resolve()
CANNOT = 77  # the exit code for ctest's "skipped"
PATIENCE = 30
sys.path.insert(0, str(SOURCE / "deploy" / "site"))
from cpp_reference import Header, markdown_of  # noqa: E402
from site_links import Site  # noqa: E402
from stage import Stage, StageError, documents_of, reindented, without_comments  # noqa: E402


def missing():
    """Names what the site is built and read with and is not installed here."""
    places = subprocess.run(
        ["bash", "-c", 'source deploy/packages.sh && echo "$TERSE_MERMAID_FOLDER"'],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = [name for name in ("mkdocs", "pymdownx", "selenium") if importlib.util.find_spec(name) is None]
    wanted += [name for name in ("doxygen", "chromedriver") if shutil.which(name) is None]
    wanted += [] if pathlib.Path("/usr/share/mkdocs/themes/material").is_dir() else ["mkdocs-material"]
    return wanted + ([] if pathlib.Path(places.stdout.strip(), "mermaid.js").exists() else ["Mermaid"])


class Links(unittest.TestCase):
    """The check itself: what it must find in a small site."""

    def problems(self, body, **files):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "index.html").write_text(f"<html><body>{body}</body></html>")
            (place / "other.html").write_text('<html><body><h1 id="there">x</h1></body></html>')
            (place / "picture.svg").write_text("<svg/>")
            for name, text in files.items():
                (place / name.replace("_", ".")).write_text(text)
            return Site(place).check().problems

    def test_good_links_are_good(self):
        self.assertEqual(
            self.problems(
                '<a href="other.html#there"></a><a href="other.html"></a><img src="picture.svg">'
                '<a href="https://example.org/"></a><a name="here"></a><a href="#here"></a>'
            ),
            [],
        )

    def test_bad_links_are_found(self):
        for body, words in [
            ('<a href="nowhere.html">x</a>', "index.html:1: 'nowhere.html': leads to no file"),
            ('<a href="../index.html">x</a>', "leads to no file"),
            ('<a href="/other.html">x</a>', "leads to no file"),
            ('<a href="other.html#here">x</a>', "other.html has no such anchor"),
            ('<a href="#here">x</a>', "index.html has no such anchor"),
            ('<img src="photo.png">', "leads to no file"),
            ('<img srcset="picture.svg 1x, photo.png 2x">', "'photo.png'"),
            ('<script src="https://example.org/a.js"></script>', "from another host"),
            ('<link rel="stylesheet" href="//example.org/a.css">', "from another host"),
            ('<style>@import "https://example.org/a.css";</style>', "from another host"),
            ('<p style="background: url(https://example.org/a.png)">x</p>', "from another host"),
        ]:
            with self.subTest(body=body):
                problems = self.problems(body)
                self.assertEqual(len(problems), 1, problems)
                self.assertIn(words, problems[0])
        self.assertIn("from another host", self.problems("", a_css="p { background: url('http://example.org/a.png') }")[0])


class Staging(unittest.TestCase):
    """A document on its way to the site."""

    def test_lists_are_indented_by_four(self):
        for text, made in [
            ("- a\n  b\n\n  c\n", "- a\n    b\n\n    c\n"),
            ("1. a\n   - b\n     c\n\nd\n", "1. a\n    - b\n        c\n\nd\n"),
            ("- a\n\n  ```sh\n  x\n    y\n  ```\n- b\n", "- a\n\n    ```sh\n    x\n      y\n    ```\n- b\n"),
            ("```\n- a\n  b\n```\n", "```\n- a\n  b\n```\n"),
            ("a\n\n    code\n", "a\n\n    code\n"),
        ]:
            with self.subTest(text=text):
                self.assertEqual(reindented(text), made)

    def test_directives_are_left_out(self):
        self.assertEqual(without_comments("a\n<!-- run:\nb\n-->\n```\n<!-- c -->\n```\n"), "a\n```\n<!-- c -->\n```\n")

    def test_links_lead_to_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            root, target = pathlib.Path(folder, "tree"), pathlib.Path(folder, "site")
            (root / "docs").mkdir(parents=True)
            (root / "a.h").write_text("int a;\n")
            (root / "docs" / "B.md").write_text("# B\n")
            text = (
                "[a\nb](../a.h), [B\nb](../docs/B.md), [B](B.md#b), `[x](y)`, {}, `docs/B.md`, [far](https://example.org)\n"
            )
            (root / "docs" / "A.md").write_text(text.format("docs/B.md"))
            Stage(root, target, []).run()
            made = text.format("[docs/B.md](B.md)").replace("a.h", "a.h.md")
            self.assertEqual((target / "docs" / "A.md").read_text(), made)
            self.assertIn("```cpp\nint a;\n```", (target / "a.h.md").read_text())
            (root / "docs" / "A.md").write_text("[x](nowhere.md)\n")
            with self.assertRaisesRegex(StageError, "docs/A.md: the link 'nowhere.md' leads to no file"):
                Stage(root, target, []).run()


class Headers(unittest.TestCase):
    """The declarations of a header and their comments."""

    TEXT = (
        "// About it.\n#ifndef A\n\n// Adds `a_b` * 2:\n// - one\n//\n//   Add(1);\n"
        "template <typename T>\nT Add(T a,\n      T b) {\n"
        "  return a;\n}\nint size = 0;  // of all\n               // of them\n"
    )

    def test_a_declaration_is_shown_without_its_body(self):
        header = Header(self.TEXT)
        self.assertEqual(header.about(), [" About it."])
        self.assertEqual(header.begin_of(9), 8)
        self.assertEqual(header.declaration(8, "function"), ("template <typename T>\nT Add(T a,\n      T b)", 10))
        self.assertEqual(header.declaration(13, "variable"), ("int size = 0;", 13))

    def test_a_comment_becomes_markdown(self):
        header = Header(self.TEXT)
        made = markdown_of(header.comment(8, 10))
        self.assertEqual(made, ["Adds `a_b` \\* 2:", "", "- one", "", "```cpp", "Add(1);", "```"])
        self.assertEqual(markdown_of(header.comment(13, 13)), ["of all", "of them"])


@functools.cache
def built_site():
    """The site of this tree, as a folder that is there until the test ends."""
    temporary = tempfile.TemporaryDirectory(prefix="terse-site-test.")
    unittest.addModuleCleanup(temporary.cleanup)
    folder = pathlib.Path(temporary.name) / "site"
    done = subprocess.run(
        [SOURCE / "deploy" / "site.sh", "--no-packages", "--out", folder], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"deploy/site.sh ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    print(done.stdout.strip())
    return folder


class Built(unittest.TestCase):
    """The site of this tree."""

    @classmethod
    def setUpClass(cls):
        cls.folder = built_site()
        cls.site = Site(cls.folder).check()

    def test_every_link_leads_somewhere(self):
        self.assertEqual(self.site.problems, [])
        print(self.site.counts())
        self.assertGreater(self.site.counts().anchors, 1000)

    def test_every_document_is_a_page(self):
        for document in documents_of(SOURCE):
            name = document.with_name("index.html") if document.name == "README.md" else document.with_suffix(".html")
            self.assertTrue((self.folder / name).is_file(), document)

    def test_no_markdown_is_left_over(self):
        for path in self.site.pages:
            text = re.sub(r"<(pre|code|script)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            found = re.search(r"```|<p>(?:[-*] |\d+\. |\|).*|\]\(\S+\).*|\*\*\w.*", text)
            self.assertIsNone(found, f"{path}: {found.group() if found else ''}")


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Browser(unittest.TestCase):
    """The same as a reader sees it, from a web server and from files, where no other host can be reached."""

    @classmethod
    def setUpClass(cls):
        cls.folder = built_site()
        from selenium import webdriver  # pylint: disable=import-outside-toplevel
        from selenium.webdriver.chrome.service import Service  # pylint: disable=import-outside-toplevel

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=cls.folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        options = webdriver.ChromeOptions()
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1400,1000",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.addClassCleanup(cls.browser.quit)
        cls.places = (f"http://127.0.0.1:{server.server_port}/", cls.folder.as_uri() + "/")

    def wait(self, script, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.browser.execute_script(script)
            if value:
                return value
            time.sleep(0.1)
        errors = [entry["message"] for entry in self.browser.get_log("browser")]
        raise AssertionError(f"{self.browser.current_url}: {what}: not within {PATIENCE} s; the browser says {errors}")

    def requested(self):
        """The addresses that the browser asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        return {
            message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
        }

    def check_requests(self, place):
        wrong = {url for url in self.requested() if not url.startswith((place, "data:", "blob:", "chrome", "about:"))}
        self.assertEqual(wrong, set())

    def test_pictures_are_drawn(self):
        document = "docs/ARCHITECTURE.md"
        wanted = (SOURCE / document).read_text(encoding="utf-8").count("```mermaid")
        self.assertGreater(wanted, 0)
        for place in self.places:
            self.browser.get(place + document.replace(".md", ".html"))
            self.wait(f"return document.querySelectorAll('div.terse-diagram svg').length === {wanted}", "pictures")
            self.assertEqual(self.browser.execute_script("return document.querySelectorAll('pre.terse-diagram').length"), 0)
            self.check_requests(place)

    def test_the_search_finds(self):
        for place in self.places:
            for words, page in (("golomb", "compression/"), ("rounds.clients", "docs/"), ("AddAndEncode", "reference/cpp/")):
                self.browser.get(f"{place}docs/CLI.html?q={urllib.parse.quote(words)}")
                found = self.wait("return [...document.querySelectorAll('.md-search-result__link')].map(a => a.href)", words)
                self.assertTrue(any(url.startswith(place + page) for url in found), (words, found))
            self.check_requests(place)


def main():
    absent = missing()
    if absent:
        print(f"site_test.py: not run, {', '.join(absent)} not installed here; 'deploy/packages.sh site test' installs all")
        return CANNOT
    return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
