"""Copies the tree's documents into a folder that MkDocs builds (deploy/site.sh).

A document keeps its place, so its links stay as they are, with three changes that a site needs: a link to a source leads
to a page with its text, a document that is named in plain words becomes a link, and lists are indented by four, which
Python-Markdown asks for and GitHub does not. Nothing is written to the documents themselves.
"""

import os
import pathlib
import re
import shutil

# Folders at the top of the tree that hold no documents of its own.
NOT_DOCUMENTS = {"build", "out", "runs", "data", "node_modules"}
COPIED = {".svg", ".png", ".csv"}
LANGUAGES = {
    ".py": "python",
    ".h": "cpp",
    ".cc": "cpp",
    ".sh": "bash",
    ".toml": "toml",
    ".proto": "proto",
    ".yml": "yaml",
    ".yaml": "yaml",
    ".json": "json",
    ".ipynb": "json",
    ".cff": "yaml",
    ".ini": "ini",
    ".service": "ini",
}
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")  # its end: the text may begin on an earlier line
ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*+]|\d+[.)])(?P<gap> +)\S")
FENCE = re.compile(r" *(```+|~~~+)")
# Links, code, comments of HTML and addresses, in which the name of a document stays as it is.
APART = re.compile(r"(!?\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|`[^`]*`|<!--.*?-->|https?://\S+)")
NAMED = re.compile(r"(?<![\w./-])((?:[\w-]+/)+[\w-]+\.md)(?![\w/-])")


class StageError(Exception):
    """A document that cannot be staged, with its place and the reason."""


def documents_of(root):
    """Every Markdown document of the tree, as a path relative to it."""
    found = []
    for folder, names, files in os.walk(root):
        here = pathlib.Path(folder)
        hidden = {name for name in names if name.startswith(".") or (here == root and name in NOT_DOCUMENTS)}
        names[:] = sorted(set(names) - hidden)
        found += [(here / name).relative_to(root) for name in files if name.endswith(".md")]
    return sorted(found)


def outside_fences(lines):
    """(line, whether it is text): the lines of a document, those of code blocks and their fences not being text."""
    fence = None
    for line in lines:
        found = FENCE.match(line)
        if fence is None and found:
            fence = found.group(1)
            yield line, False
        elif fence is not None:
            if line.strip().startswith(fence):
                fence = None
            yield line, False
        else:
            yield line, True


def without_comments(text):
    """The text without the comments of HTML that stand on lines of their own: directives for tests."""
    kept, within = [], False
    for line, is_text in outside_fences(text.split("\n")):
        begins = is_text and line.lstrip().startswith("<!--")
        if begins or within:
            within = "-->" not in line
        else:
            kept.append(line)
    return "\n".join(kept)


def reindented(text):
    """The text with every level of a list indented by four."""
    done, levels = [], []  # levels: the columns at which the text of the open items begins
    fenced = None
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        if not bare:
            done.append("")
            continue
        if fenced is None:
            while levels and indent < levels[-1]:
                levels.pop()
        column = levels[-1] if levels else 0
        moved = " " * (4 * len(levels) + max(0, indent - column)) + bare
        done.append(moved)
        mark = FENCE.match(line)
        if fenced is not None:
            if bare.startswith(fenced):
                fenced = None
        elif mark:
            fenced = mark.group(1)
        else:
            item = ITEM.match(line)
            if item and indent - column < 4:
                levels.append(len(item["indent"]) + len(item["mark"]) + len(item["gap"]))
    return "\n".join(done)


def unescaped_bars(line):
    """A row of a table with `a\\|b` as `a|b`: within code Python-Markdown takes a bar for itself and shows the backslash."""
    return re.sub(r"`[^`]*`", lambda code: code.group().replace("\\|", "|"), line) if line.startswith("|") else line


class Stage:
    """Writes documents, and what they link to, into a folder."""

    def __init__(self, root, target, generated):
        """`generated`: paths of pages that others write, to which documents may link."""
        self.root = root.resolve()
        self.target = target
        self.documents = set(documents_of(self.root))
        self.generated = set(generated)
        self.sources = set()

    def run(self):
        for document in sorted(self.documents):
            text = (self.root / document).read_text(encoding="utf-8")
            self.write(document, self.page(document, text))
        for source in sorted(self.sources):
            self.write(self._page_of(source), self._listing(source))
        return self

    def page(self, document, text):
        lines = []
        for line, is_text in outside_fences(reindented(without_comments(text)).split("\n")):
            lines.append(self._linked(document, unescaped_bars(line)) if is_text else line)
        return "\n".join(lines)

    def write(self, path, text):
        place = self.target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def _linked(self, document, line):
        line = "".join(
            part if number % 2 else LINK.sub(lambda found: f"]({self._target(document, found['target'])})", part)
            for number, part in enumerate(re.split("(`[^`]*`)", line))
        )
        return "".join(
            part if number % 2 else NAMED.sub(lambda found: self._named(document, found.group()), part)
            for number, part in enumerate(APART.split(line))
        )

    def _target(self, document, target):
        """Where a link of the document leads in the site."""
        path, separator, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return target
        place = pathlib.Path(os.path.normpath(document.parent / path))
        if place in self.documents or place in self.generated:
            return target
        if not (self.root / place).is_file():
            raise StageError(f"{document}: the link '{target}' leads to no file of the tree")
        if place.suffix in COPIED:
            (self.target / place.parent).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / place, self.target / place)
            return target
        self.sources.add(place)
        return f"{path}{self._page_of(place).name[len(place.name):]}{separator}{anchor}"

    @staticmethod
    def _page_of(source):
        return source.with_name(f"{source.name}.md")

    def _named(self, document, name):
        if pathlib.Path(name) not in self.documents or pathlib.Path(name) == document:
            return name
        return f"[{name}]({os.path.relpath(name, document.parent)})"

    def _listing(self, source):
        text = (self.root / source).read_text(encoding="utf-8")
        fence = "```"
        while fence in text:
            fence += "`"
        head = f"# {source.name}\n\nThis is `{source}` of the tree.\n\n"
        return f"{head}{fence}{LANGUAGES.get(source.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"
