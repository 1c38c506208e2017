#!/usr/bin/env python3
"""The commands of a document, in order, with where they run.

A document says it in comments of its own, which nobody sees who reads it rendered. Near the top stands

    <!-- machines: NAME... -->

and above every block of shell commands one of

    <!-- run: [on=NAME[,NAME...]] [shows=TEXT] [until=TEXT | stays=TEXT] [seconds=N] -->
    <!-- not run: REASON -->

`on` is the machine; several run it one after the other. The block must end with 0 within `seconds` (300) and, with
`shows`, print TEXT. With `until` it goes on by itself: it is interrupted once it has printed TEXT, or with `stays` left
running. Commands that stand in the comment itself, on the lines below `run:`, are run and not shown. A machine called
`tree` is none: it is the tree as it was built (tests/docs/tree.sh). tests/docs.sh boots the others. What a reader
carries from one machine to another by hand is

    <!-- bring: from=NAME:PATH to=NAME:PATH -->

where `source` in place of the first NAME is a clone of the tree that the document is in.
"""

import argparse
import collections
import pathlib
import re
import shlex
import sys

# `kind` is run, bring or skip; `line` counts from 1.
Step = collections.namedtuple("Step", "kind line machine text shows until stays seconds", defaults=("", "", "", 0))

KEYS = {"run": {"on", "shows", "until", "stays", "seconds"}, "bring": {"from", "to"}}
PATIENCE = 300  # seconds for a block
SOURCE = "source"
TREE = "tree"
DIRECTIVE = re.compile(r"<!-- *(machines|run|not run|bring): *([^\n]*?) *(?:\n(.*?))? *-->\s*$", re.DOTALL)
FENCE = re.compile(r"^( *)```(\w*)")
SHELLS = ("sh", "bash", "shell", "console")


class DocumentError(Exception):
    """A directive that cannot be followed, with the document's line."""


def values_of(kind, text, line):
    """{key: value} of a directive's line."""
    values = {}
    for word in shlex.split(text):
        key, separator, value = word.partition("=")
        if not separator or key not in KEYS[kind] or key in values:
            keys = ", ".join(sorted(KEYS[kind]))
            raise DocumentError(f"{line}: '{word}' is not one of {keys}, each once, with =VALUE")
        values[key] = value
    return values


def tokens(lines):
    """(line, 'comment' or 'block', text) for every comment and every block of shell commands."""
    number = 0
    while number < len(lines):
        start = number + 1
        fence = FENCE.match(lines[number])
        if fence:
            end = number + 1
            while end < len(lines) and not lines[end].strip().startswith("```"):
                end += 1
            if end == len(lines):
                raise DocumentError(f"{start}: this block has no end")
            if fence.group(2) in SHELLS:
                indent = len(fence.group(1))
                yield start, "block", "\n".join(one[indent:] for one in lines[number + 1:end]) + "\n"
            number = end
        elif lines[number].strip().startswith("<!--"):
            end = number
            while "-->" not in lines[end]:
                end += 1
                if end == len(lines):
                    raise DocumentError(f"{start}: this comment has no end")
            yield start, "comment", "\n".join(lines[number:end + 1]).strip()
            number = end
        number += 1


class Reader:
    """Turns the tokens of one document into steps."""

    def __init__(self):
        self.machines = []
        self.steps = []
        self.pending = None  # the directive that waits for its block

    def read(self, text):
        for line, kind, body in tokens(text.splitlines()):
            if kind == "block":
                self._block(line, body)
            else:
                self._comment(line, body)
        self._expect_nothing_pending("the end")
        return self

    def _expect_nothing_pending(self, where):
        if self.pending:
            raise DocumentError(f"{self.pending[0]}: no block of commands between this directive and {where}")

    def _comment(self, line, body):
        found = DIRECTIVE.match(body)
        if not found:
            if re.match(r"<!-- *(machines|run|not run|not-run|bring|skip)\b", body):
                raise DocumentError(f"{line}: a directive that cannot be read: {body}")
            return
        self._expect_nothing_pending(f"line {line}")
        kind, rest, commands = found.groups()
        if kind == "machines":
            self.machines = rest.split()
        elif kind == "not run":
            if not rest:
                raise DocumentError(f"{line}: 'not run' needs a reason")
            self.pending = (line, kind, rest)
        elif kind == "bring":
            self._bring(line, values_of(kind, rest, line))
        elif commands:
            self._run(line, values_of(kind, rest, line), commands.strip() + "\n")
        else:
            self.pending = (line, kind, values_of(kind, rest, line))

    def _block(self, line, body):
        if not self.pending:
            raise DocumentError(f"{line}: commands without a directive above them: where do they run, or why not?")
        _, kind, rest = self.pending
        self.pending = None
        if kind == "not run":
            self.steps.append(Step("skip", line, "", rest))
        else:
            self._run(line, rest, body)

    def _run(self, line, values, commands):
        seconds = values.get("seconds", str(PATIENCE))
        if not re.fullmatch("[1-9][0-9]*", seconds):
            raise DocumentError(f"{line}: 'seconds={seconds}' is not a positive number")
        if "until" in values and "stays" in values:
            raise DocumentError(f"{line}: 'until' ends it and 'stays' does not: one of them")
        for machine in values.get("on", self.machines[0] if self.machines else "").split(","):
            self._known(line, machine)
            self.steps.append(Step("run", line, machine, commands, values.get("shows", ""), values.get("until", ""),
                                   values.get("stays", ""), int(seconds)))

    def _bring(self, line, values):
        if len(values) != 2:
            raise DocumentError(f"{line}: 'bring' needs from= and to=")
        for key, place in values.items():
            machine = place.partition(":")[0]
            if key != "from" or machine != SOURCE:
                self._known(line, machine)
        self.steps.append(Step("bring", line, "", f"{values['from']}\n{values['to']}\n"))

    def _known(self, line, machine):
        if machine not in self.machines:
            names = " ".join(self.machines) or "none"
            raise DocumentError(f"{line}: no machine '{machine}'; the document has: {names}")


def where(step):
    """The machine of a step that is run, or the one to which something is brought."""
    return step.machine or step.text.splitlines()[1].partition(":")[0]


def write(reader, folder, tree=False):
    """The steps in the tree, or those on machines, as files for tests/docs/steps.sh: FOLDER/NNN/KEY for every key of a
    step, and FOLDER/machines."""
    folder.mkdir(parents=True)
    (folder / "machines").write_text("".join(name + "\n" for name in reader.machines if name != TREE))
    steps = [step for step in reader.steps if step.kind == "skip" or (where(step) == TREE) == tree]
    for number, step in enumerate(steps):
        place = folder / f"{number:03}"
        place.mkdir()
        for key, value in step._asdict().items():
            (place / key).write_text(str(value))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", type=pathlib.Path, metavar="DOCUMENT")
    parser.add_argument("--steps", type=pathlib.Path, metavar="DIR", help="write the steps of the one document there")
    parser.add_argument("--tree", action="store_true", help="those in the tree, not those on machines")
    arguments = parser.parse_args()
    if arguments.steps and len(arguments.documents) != 1:
        parser.error("--steps takes one document")
    failed = False
    for document in arguments.documents:
        try:
            reader = Reader().read(document.read_text())
        except DocumentError as error:
            print(f"{document}:{error}", file=sys.stderr)
            failed = True
            continue
        if arguments.steps:
            write(reader, arguments.steps, arguments.tree)
        else:
            count = collections.Counter(step.kind for step in reader.steps)
            print(f"{document}: {count['run']} run, {count['skip']} not run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
