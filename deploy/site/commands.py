#!/usr/bin/python3
"""Prints docs/COMMANDS.md: every program, command and option, as its --help says it.

usage: commands.py BIN_DIR > docs/COMMANDS.md   (BIN_DIR holds the programs of a build: build/release/bin)
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = """# Commands

This is every program with its commands and options, as `--help` prints them.
`deploy/site/commands.py build/release/bin >docs/COMMANDS.md` writes the document and a test compares it.
[CLI.md](CLI.md) shows the commands at work.

In the tables, a value is written as the program names it: its type, then what is allowed.
"""
PROGRAMS = (
    "terse-coordinator",
    "terse-client",
    "terse-relay",
    "terse-simulate",
    "tersectl",
    "terse-trainer-check",
    "terse-bench",
)
SCRIPTS = (
    "deploy/demo.sh",
    "deploy/fleet.sh",
    "deploy/build.sh",
    "deploy/packages.sh",
    "deploy/package.sh",
    "deploy/wheel.sh",
    "deploy/base_image.sh",
    "deploy/site.sh",
    "python/examples/run.sh",
    "tests/run.sh",
    "tests/bare.sh",
)
DESCRIPTION_COLUMN = 30  # where CLI11 begins to describe an option


class HelpError(Exception):
    """A --help that this script cannot read."""


def help_of(command, environment=None):
    """The text of COMMAND --help, with no colours and no settings of the caller's."""
    kept = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", **(environment or {})}
    # Some defaults depend on the folder; from the root of the file system they are those of an installed program.
    done = subprocess.run(
        [*command, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=kept, check=False, cwd="/"
    )
    if done.returncode != 0 or not done.stdout:
        raise HelpError(f"{' '.join(map(str, command))} --help ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def sections_of(text):
    """{title: lines} of a --help; what stands above the first title is under '', an option group under 'group',
    what stands below the last under 'end'."""
    sections, title = {"": []}, ""
    for line in text.splitlines():
        if re.fullmatch(r"(Positionals|Options|Subcommands):", line):
            title = line[:-1]
        elif line.startswith("[Option Group:"):
            title = "group"
        elif line and not line.startswith(" ") and title:
            title = "end"
        sections.setdefault(title, []).append(line)
    return sections


def entries_of(lines):
    """(term, description) of the lines below a title, where a long term has its description on the next line."""
    entries = []
    for line in lines[1:]:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 2:
            term = line.strip()
            description = ""
            if len(line) > DESCRIPTION_COLUMN and line[DESCRIPTION_COLUMN - 2 : DESCRIPTION_COLUMN].isspace():
                term, description = line[:DESCRIPTION_COLUMN].strip(), line[DESCRIPTION_COLUMN:]
            elif re.search(r"\S  +\S", line.strip()):
                term, description = re.split(r"  +", line.strip(), maxsplit=1)
            entries.append([term, description])
        elif entries:
            entries[-1][1] = f"{entries[-1][1]} {line.strip()}".strip()
        else:
            raise HelpError(f"a description without an option: {line}")
    return entries


def group_of(lines):
    """(condition, entries) of an option group's lines: its own options, of which the condition says how many are given."""
    inner = [line.removeprefix("  ") for line in lines]
    if inner.count("Options:") != 1:
        raise HelpError(f"not one option group with options: {lines[0]}")
    conditions = [line.strip("[] ") for line in inner if re.fullmatch(r"\[.*required\]", line.strip())]
    if len(conditions) != 1:
        raise HelpError(f"an option group that does not say how many are needed: {lines[0]}")
    return conditions[0], entries_of(inner[inner.index("Options:") :])


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def code(text):
    return f"`{text}`" if text else ""


def taken_out(pattern, text):
    """(what the group of the pattern matches or '', the text without the match)."""
    found = re.search(pattern, text)
    return (found.group(1), text[: found.start()] + text[found.end() :]) if found else ("", text)


def row_of(term, description):
    """A table's row: the option, its value, its default, what it does."""
    needs, term = taken_out(r" Needs: ([^ ]+)", term)
    excludes, term = taken_out(r" Excludes:(?: ([^ ]+))?", term)
    variable, term = taken_out(r" \(Env:([^)]+)\)", term)
    required, term = taken_out(r" (REQUIRED)\b", term)
    names, _, value = term.partition(" ")
    many, value = taken_out(r" ?(\.\.\.)$", value)
    value, _, default = value.rpartition("=") if "=" in value else (value, "", "")
    kind, _, allowed = value.partition(":")
    notes = [
        text
        for text, said in (
            (f"or the variable `{variable}`", variable),
            (f"needs `{needs}`", needs),
            (f"not with `{excludes}`", excludes),
            ("may be given several times", many and "several times" not in description),
        )
        if said
    ]
    shown = cell(description) + (f" ({'; '.join(notes)})" if notes else "")
    values = f"{kind} {cell(allowed)}".strip()
    return f"| {code(names.replace(',', ', '))} | {values} | {'required' if required else code(default)} | {shown} |"


def table(title, entries):
    rows = [row_of(*entry) for entry in entries if entry[0] != "-h,--help"]
    if not rows:
        return []
    return [f"| {title} | value | default | meaning |", "|---|---|---|---|", *rows, ""]


def program(command, executable, level):
    """The lines about a program or a command of it, and about what is below it."""
    sections = sections_of(help_of([executable, *command[1:]]))
    above = [line for line in sections[""] if line]
    usage = [line.removeprefix("Usage: ") for line in above if line.startswith("Usage: ")]
    said = [line for line in above if not line.startswith("Usage: ")]
    if len(usage) != 1 or not said or "Options" not in sections:
        raise HelpError(f"{' '.join(command)} --help has no description, usage or options")
    lines = [f"{'#' * level} {' '.join(command)}", "", " ".join(said).rstrip(".") + ".", "", "```text", *usage, "```", ""]
    lines += table("argument", entries_of(sections.get("Positionals", [""])))
    lines += table("option", entries_of(sections["Options"]))
    if "group" in sections:
        condition, entries = group_of(sections["group"])
        lines += [f"{condition}:", ""]
        lines += table("option", entries)
    below = entries_of(sections.get("Subcommands", [""]))
    if below:
        links = [f"[`{name}`](#{'-'.join([*command, name])})" for name, _ in below]
        lines += [f"Commands: {', '.join(links)}.", ""]
    if len(command) == 1 and any(line.strip() for line in sections.get("end", [])):
        lines += [" ".join(line.strip() for line in sections["end"] if line.strip()), ""]
    for name, _ in below:
        lines += program([*command, name], executable, min(level + 1, 4))
    return lines


def script(name, text):
    return [f"### {name}", "", "```text", text.rstrip(), "```", ""]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    lines = [HEAD]
    for name in PROGRAMS:
        lines += program([name], folder / name, 2)
    lines += ["## The command of the package for Python", ""]
    terse = ["/usr/bin/python3", "-c", "import sys; from terse._command import main; sys.exit(main(sys.argv[1:]))"]
    lines += script("terse", help_of(terse, {"PYTHONPATH": str(ROOT / "python")}))
    lines += ["## Scripts of the tree", ""]
    for name in SCRIPTS:
        lines += script(name, help_of([ROOT / name]))
    print("\n".join(lines).rstrip())


if __name__ == "__main__":
    try:
        main()
    except HelpError as error:
        sys.exit(f"commands.py: {error}")
