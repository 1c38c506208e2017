"""Follows every link of a built site: pages, anchors, pictures, scripts and style sheets, and refuses what a browser would
fetch from another host.

usage: site_links.py SITE
"""

import collections
import html.parser
import pathlib
import re
import sys
import urllib.parse

# The attributes whose targets a browser fetches by itself; other links wait for a click.
FETCHED = {
    ("img", "src"),
    ("script", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("embed", "src"),
    ("object", "data"),
    ("img", "srcset"),
    ("source", "srcset"),
}
# The relations of <link> for which it does the same.
FETCHED_RELATIONS = {
    "stylesheet",
    "icon",
    "shortcut",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "manifest",
    "modulepreload",
}
STYLE_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
Counts = collections.namedtuple("Counts", "pages links anchors fetched elsewhere")
Link = collections.namedtuple("Link", "line target fetched")


class Page(html.parser.HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []
        self.in_style = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.in_style = tag == "style"
        self.anchors.update(value for key, value in attrs if value and (key == "id" or (tag == "a" and key == "name")))
        if tag == "link":
            relations = set((values.get("rel") or "").lower().split())
            self._add(values.get("href"), bool(relations & FETCHED_RELATIONS))
        elif tag in ("a", "area"):
            self._add(values.get("href"), False)
        for key, value in attrs:
            if (tag, key) in FETCHED:
                for part in (value or "").split(",") if key == "srcset" else [value]:
                    self._add((part or "").split()[0] if part and part.split() else part, True)
            elif key == "style":
                self._style(value or "")

    def handle_data(self, data):
        if self.in_style:
            self._style(data)

    def handle_endtag(self, tag):
        self.in_style = False

    def _style(self, text):
        for found in STYLE_URL.finditer(text):
            self._add(found.group(1) or found.group(2), True)

    def _add(self, target, fetched):
        if target is not None:
            self.links.append(Link(self.getpos()[0], target.strip(), fetched))


class Site:
    """A folder of pages, and what is wrong with their links."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        self.problems = []
        self.count = collections.Counter()
        self.pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(self.folder.rglob("*.html"))}

    def check(self):
        for path, page in self.pages.items():
            for link in page.links:
                self._follow(path, link)
        for path in sorted(self.folder.rglob("*.css")):
            for found in STYLE_URL.finditer(path.read_text(encoding="utf-8")):
                self._follow(path, Link(1, (found.group(1) or found.group(2)).strip(), True))
        if not self.pages:
            self.problems.append(f"{self.folder}: no pages")
        return self

    def counts(self):
        return Counts(len(self.pages), *(self.count[key] for key in ("links", "anchors", "fetched", "elsewhere")))

    def _follow(self, path, link):
        parts = urllib.parse.urlsplit(link.target)
        if parts.scheme in ("data", "mailto", "javascript"):
            return
        if parts.scheme or parts.netloc:
            self.count["elsewhere"] += 1
            if link.fetched:
                self._problem(path, link, "a browser would fetch this from another host")
            return
        self.count["fetched" if link.fetched else "links"] += 1
        target = self._place(path, parts.path)
        if target is None:
            self._problem(path, link, "leads to no file of the site")
        elif parts.fragment and not link.fetched:
            self.count["anchors"] += 1
            anchor = urllib.parse.unquote(parts.fragment)
            if target not in self.pages or anchor not in self.pages[target].anchors:
                self._problem(path, link, f"{target.relative_to(self.folder)} has no such anchor")

    def _place(self, path, target):
        """The file to which a link's path leads, or None. The page of the error 404 alone names its links from the top."""
        if not target:
            return path
        name = urllib.parse.unquote(target)
        place = self.folder / name.lstrip("/") if name.startswith("/") and path.name == "404.html" else path.parent / name
        if name.startswith("/") and path.name != "404.html":
            return None
        place = place.resolve()
        if place.is_dir():
            place = place / "index.html"
        return place if place.is_file() and place.is_relative_to(self.folder) else None

    def _problem(self, path, link, reason):
        self.problems.append(f"{path.relative_to(self.folder)}:{link.line}: '{link.target}': {reason}")


def main():
    site = Site(pathlib.Path(sys.argv[1])).check()
    print("\n".join(site.problems), file=sys.stderr)
    print(site.counts())
    return 1 if site.problems else 0


if __name__ == "__main__":
    sys.exit(main())
