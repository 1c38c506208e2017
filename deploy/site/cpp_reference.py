#!/usr/bin/python3
"""The reference of the C++ library as Markdown, a page for each header that is installed.

Doxygen says what a header declares and where. The text is that of the comment which stands above a declaration, or behind
it, and the declaration is shown as the header has it. Run alone, it lists the declarations that have no comment of their
own: a class is described by its members as well, and a field often by its name.
"""

import collections
import os
import pathlib
import re
import subprocess
import tempfile
from xml.etree import ElementTree

FOLDER = pathlib.Path("reference/cpp")
INSTALL = "cmake/TerseInstall.cmake"
DOXYFILE = """INPUT = {inputs}
STRIP_FROM_PATH = {root}
OUTPUT_DIRECTORY = {out}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
SORT_MEMBER_DOCS = NO
QUIET = YES
WARNINGS = YES
WARN_IF_UNDOCUMENTED = NO
WARN_LOGFILE = {out}/warnings
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = "ABSL_GUARDED_BY(x)=" "ABSL_EXCLUSIVE_LOCKS_REQUIRED(x)=" "ABSL_LOCKS_EXCLUDED(x)="
"""
SECTIONS = {
    "public-func",
    "public-static-func",
    "public-attrib",
    "public-static-attrib",
    "public-type",
    "protected-func",
    "protected-static-func",
    "protected-attrib",
    "protected-type",
    "func",
    "var",
    "typedef",
    "enum",
    "define",
    "user-defined",
}
MARKDOWN = re.compile(r"([\\*_\[\]#|<>])")
MADE_BY_RULE = re.compile(r"= (?:default|delete);|\boverride\b|\bfinal\b|~\w+\(|operator[=!]=|explicit operator bool")
# declaration, text: as the header has them; line counts from 1; kind is Doxygen's.
Entry = collections.namedtuple("Entry", "line kind name declaration text inner")
Reference = collections.namedtuple("Reference", "pages undocumented warnings")


class HeaderError(Exception):
    """Doxygen failed, or the list of headers could not be read."""


def headers_of(root):
    """The headers that `cmake --install` installs, as cmake/TerseInstall.cmake names them."""
    text = (root / INSTALL).read_text(encoding="utf-8")
    folders = re.search(r"install\(DIRECTORY (.*?)DESTINATION.*?\)\n", text, re.DOTALL)
    plugins = re.search(r"foreach\(header (.*?)\)", text, re.DOTALL)
    if not folders or not plugins:
        raise HeaderError(f"{INSTALL}: no list of the headers that are installed")
    left_out = tuple(f"{name}/" for name in re.findall(r'PATTERN "([\w/]+)" EXCLUDE', folders.group()))
    found = [
        path.relative_to(root)
        for folder in re.findall(r'"\$\{CMAKE_SOURCE_DIR\}/(\w+)"', folders.group(1))
        for path in sorted((root / folder).rglob("*.h"))
    ]
    return [path for path in found if not str(path).startswith(left_out)] + [
        pathlib.Path(name) for name in plugins.group(1).split()
    ]


class Header:
    """The lines of a header."""

    def __init__(self, text):
        self.lines = text.split("\n")

    def about(self):
        """The comment with which it begins."""
        lines = []
        for line in self.lines:
            if not line.startswith("//"):
                break
            lines.append(line[2:])
        return lines

    def begin_of(self, line):
        """The first line of the declaration of which `line` is one."""
        while line > 1:
            above = self.lines[line - 2].strip()
            if not above or above.startswith(("//", "#")) or above.endswith((";", "{", "}", ":")) or "//" in above:
                break
            line -= 1
        return line

    def declaration(self, begin, kind):
        """Its text without a body or a comment, and the line on which it ends."""
        taken, depth = [], 0
        for number in range(begin, len(self.lines) + 1):
            line = re.sub(r"\s*//.*", "", self.lines[number - 1])
            end = self._end_in(line, kind, depth)
            taken.append(line if end is None else line[:end].rstrip())
            if end is not None or (kind == "define" and not line.endswith("\\")):
                return "\n".join(taken).rstrip(), number
            depth += line.count("(") - line.count(")")
        return "\n".join(taken), len(self.lines)

    @staticmethod
    def _end_in(line, kind, depth):
        """Where the declaration ends in the line, or None."""
        for place, sign in enumerate(line):
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if depth > 0:
                continue
            if sign == ";":
                return place + 1
            if sign == "{" and kind in ("function", "class", "struct", "enum"):
                return place
            if kind == "function" and line[place:].startswith((" : ", ": ")) and line[place - 1 : place] in (")", " ", ""):
                return place
        return None

    def comment(self, begin, end):
        """The lines of the comment above the declaration, or behind it."""
        lines, number = [], begin - 1
        while number >= 1 and self.lines[number - 1].lstrip().startswith("//"):
            lines.insert(0, self.lines[number - 1].lstrip()[2:])
            number -= 1
        if lines:
            return lines
        behind = re.search(r"\S\s+//(.*)", self.lines[end - 1])
        if not behind:
            return []
        lines, column = [behind.group(1)], self.lines[end - 1].index("//")
        for line in self.lines[end:]:
            if len(line) - len(line.lstrip()) != column or not line.lstrip().startswith("//"):
                break
            lines.append(line.lstrip()[2:])
        return lines


def markdown_of(lines):
    """A comment, of which each line has lost its slashes, with its lists and its code."""
    done, code = [], False
    for line in lines:
        words = line.removeprefix(" ")
        is_code = words.startswith("  ") and (code or not done or not done[-1].strip())
        if is_code != code:
            done += ["```cpp"] if is_code else ["```", ""]
        code = is_code
        if code:
            done.append(words[2:])
            continue
        item = re.match(r"(\s*)([-*]) (.*)", words)
        if item and done and done[-1].strip() and not done[-1].lstrip().startswith("- "):
            done.append("")
        text = f"{item.group(1)}- {escaped(item.group(3))}" if item else escaped(words)
        done.append(text)
    return done + (["```"] if code else [])


def escaped(words):
    """Words for Markdown, code between backticks untouched."""
    return "".join(
        part if number % 2 else MARKDOWN.sub(r"\\\1", part) for number, part in enumerate(re.split("(`[^`]*`)", words))
    )


class Library:
    """All that Doxygen found, by header."""

    def __init__(self, root, xml):
        self.root = root
        self.xml = xml
        self.headers = {}
        self.compounds = {}
        self.undocumented = []
        for path in sorted(xml.glob("*.xml")):
            found = ElementTree.parse(path).getroot().find("compounddef")
            if found is not None and found.get("kind") in ("class", "struct", "namespace", "file"):
                self.compounds[found.get("id")] = found

    def header(self, path):
        if path not in self.headers:
            self.headers[path] = Header((self.root / path).read_text(encoding="utf-8"))
        return self.headers[path]

    def entries(self, path):
        """The declarations of a header, in its order."""
        found = []
        for compound in self.compounds.values():
            kind = compound.get("kind")
            if kind in ("namespace", "file"):
                found += self._members(compound, path)
            elif "::" not in self._short(compound) and compound.get("prot") == "public":
                found += self._class(compound, path)
        return self._joined(path, sorted({entry.line: entry for entry in found}.values(), key=lambda entry: entry.line))

    @staticmethod
    def _short(compound):
        return compound.findtext("compoundname").removeprefix("terse::")

    def _class(self, compound, path):
        location = compound.find("location")
        if location is None or location.get("file") != str(path):
            return []
        inner = self._members(compound, path)
        for each in compound.findall("innerclass"):
            if each.get("prot") in ("public", "protected") and each.get("refid") in self.compounds:
                inner += self._class(self.compounds[each.get("refid")], path)
        name = self._short(compound)
        inner = self._joined(path, sorted(inner, key=lambda entry: entry.line), name)
        entry = self._entry(path, compound.get("kind"), name, int(location.get("line")), inner)
        if entry.kind == "struct":  # its fields read best as they stand, each with its comment
            declaration, end = self._whole(self.header(path), entry.line[0])
            entry = entry._replace(line=(entry.line[0], end), declaration=declaration, inner=[])
        return [entry]

    def _members(self, compound, path):
        found = []
        for section in compound.findall("sectiondef"):
            if section.get("kind") not in SECTIONS:
                continue
            for member in section.findall("memberdef"):
                location = member.find("location")
                name = member.findtext("name")
                if (
                    location.get("file") == str(path)
                    and not re.fullmatch(r"TERSE_\w+_H_", name)
                    and member.get("kind") != "friend"
                ):
                    line = int(location.get("declline") or location.get("line"))
                    found.append(self._entry(path, member.get("kind"), name, line, []))
        return found

    def _entry(self, path, kind, name, line, inner):
        header = self.header(path)
        begin = header.begin_of(line)
        declaration, end = header.declaration(begin, kind)
        if kind == "enum":
            declaration, end = self._whole(header, begin)
        return Entry((begin, end), kind, name, declaration, header.comment(begin, end), inner)

    @staticmethod
    def _whole(header, begin):
        """A struct or an enumeration with all that is in it, comments too."""
        margin = len(header.lines[begin - 1]) - len(header.lines[begin - 1].lstrip())
        for end in range(begin, len(header.lines) + 1):
            line = header.lines[end - 1]
            if line.startswith(" " * margin + "}") or (end == begin and line.rstrip().endswith("};")):
                return "\n".join(header.lines[begin - 1 : end]), end
        raise HeaderError(f"a declaration has no end: {header.lines[begin - 1]}")

    def _joined(self, path, entries, owner=""):
        """Declarations that stand together under one comment become one entry."""
        done = []
        for entry in entries:
            last = done[-1] if done else None
            if last and self._shares(self.header(path), last, entry):
                done[-1] = last._replace(
                    line=(last.line[0], entry.line[1]), declaration=f"{last.declaration}\n{entry.declaration}"
                )
                continue
            if not entry.text and not MADE_BY_RULE.search(entry.declaration):
                self.undocumented.append(f"{path}:{entry.line[0]}: {owner + '::' if owner else ''}{entry.name}")
            done.append(entry)
        return done

    @staticmethod
    def _shares(header, last, entry):
        """Whether the comment above `last` speaks of `entry` too, which follows on the next line without one of its own."""
        if entry.text or not last.text or last.inner or entry.inner or last.kind != entry.kind:
            return False
        is_above = header.lines[last.line[0] - 2].lstrip().startswith("//")
        return is_above and entry.line[0] == last.line[1] + 1


def dedented(text):
    lines = text.split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[margin:] for line in lines]


def entry_lines(entry):
    """An entry's part of its page: classes have a heading of their own, what they hold is a list of declarations."""
    lines = []
    if entry.kind in ("class", "struct"):
        lines += [f"## {entry.kind} `{entry.name}`", ""]
    if entry.kind != "class" or ":" in entry.declaration.replace("::", ""):
        lines += ["```cpp", *dedented(entry.declaration), "```", ""]
    lines += [*markdown_of(entry.text), ""]
    for inner in entry.inner:
        if not inner.text and re.search(r"~\w+\(", inner.declaration):
            continue
        lines += ["***", "", *entry_lines(inner)[2:]] if inner.kind in ("class", "struct") else entry_lines(inner)
    return lines


def page(path, header, entries):
    lines = [f"# {path}", "", *markdown_of(header.about()), "", "```cpp", f'#include "{path}"', "```", ""]
    others = [entry for entry in entries if entry.kind not in ("class", "struct")]
    for entry in entries:
        if entry.kind in ("class", "struct"):
            lines += entry_lines(entry)
    if others:
        lines += ["## Functions, constants and names", ""] if len(others) < len(entries) else []
        for entry in others:
            lines += entry_lines(entry)
    return "\n".join(lines)


def summary(header):
    """The first sentence of a header's comment."""
    text = " ".join(line.strip() for line in header.about())
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(":.") + "." if text else ""


def index(headers, library):
    lines = [
        "# C++ library",
        "",
        "These are the headers that `cmake --install` installs, each with what it declares and the comment that stands "
        "there. [How the library is used alone](../../compression/README.md) and [with your own "
        "model](../../docs/EXTEND.md) is told "
        "elsewhere.",
        "",
    ]
    for folder in dict.fromkeys(path.parent for path in headers):
        lines += [f"## {folder}", "", "| header | |", "|---|---|"]
        lines += [
            f"| [{path}]({path}.md) | {escaped(summary(library.header(path)))} |"
            for path in headers
            if path.parent == folder
        ]
        lines.append("")
    return "\n".join(lines)


def make(root, work):
    """Reference(pages, ...): {path in the site: text}, the declarations without a comment, and what Doxygen warns of."""
    root = root.resolve()
    headers = headers_of(root)
    work.mkdir(parents=True)
    (work / "Doxyfile").write_text(
        DOXYFILE.format(inputs=" ".join(str(root / path) for path in headers), root=root, out=work)
    )
    done = subprocess.run(["doxygen", work / "Doxyfile"], capture_output=True, text=True, check=False, cwd=work)
    if done.returncode != 0:
        raise HeaderError(f"doxygen ended with {done.returncode}: {done.stderr.strip()}")
    library = Library(root, work / "xml")
    pages = {FOLDER / f"{path}.md": page(path, library.header(path), library.entries(path)) for path in headers}
    pages[FOLDER / "index.md"] = index(headers, library)
    warnings = [line for line in (work / "warnings").read_text().splitlines() if line.strip()]
    return Reference(
        pages, library.undocumented, [os.path.relpath(line, root) if line.startswith("/") else line for line in warnings]
    )


def main():
    with tempfile.TemporaryDirectory(prefix="terse-headers.") as work:
        reference = make(pathlib.Path(__file__).resolve().parents[2], pathlib.Path(work) / "doxygen")
    print("\n".join(reference.undocumented + reference.warnings))


if __name__ == "__main__":
    main()
