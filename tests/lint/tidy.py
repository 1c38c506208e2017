#!/usr/bin/env python3
"""Runs clang-tidy over what a build folder compiles; tests/lint.sh calls it.

Most of the time goes into the headers of gRPC, LibTorch and GoogleTest, so sources are examined several at a time. The
libraries are joined already (preset `tidy`). Sources of tests and benchmarks that are compiled alike are put
together here, as far as the names at their top level differ; where a name clashes all the same, they are examined one by one.

A unit that was found clean is not examined again as long as its preprocessed text, its flags, .clang-tidy and the
checks stay what they were: a file in the cache is named by the hash of these.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

SOURCES_A_UNIT = 16
PACKED = ("tests/", "bench/")
STAMP_DAYS = 60
TOP_LEVEL = re.compile(r"^(?![\s}]|TEST|INSTANTIATE|MATCHER|BENCHMARK|using |namespace |return |#|//)"
                       r"(?:(?:class|struct|enum class|enum|union) (?P<type>\w+)|[\w:<>*&,\[\] ]+?[ *&](?P<name>\w+)(?:\(| =|\{|\[|;))",
                       re.MULTILINE)
INCLUDE = re.compile(r'^#include "(.*\.h)"', re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+) =", re.MULTILINE)
COUNT = re.compile(r"^\d+ warnings? generated\.\n", re.MULTILINE)  # also of those that are not shown
FINDING = re.compile(r"^(?=/[^\n]*:\d+:\d+: (?:warning|error): )", re.MULTILINE)


class Unit:
    """`name` is for people, `path` the file that is examined, `flags` the compiler's, `sources` those that it holds."""

    def __init__(self, name, path, flags, sources):
        self.name, self.path, self.flags, self.sources = name, path, flags, sources


def flags_of(entry):
    """The compiler's flags without its output, the source and -Werror: .clang-tidy says which warnings are findings."""
    words = shlex.split(entry["command"])
    flags, skip = [], False
    for word in words[1:]:
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word not in ("-c", "-Werror", entry["file"]):
            flags.append(word)
    return tuple(flags)


def is_joined(path):
    """Whether terse_join_sources of cmake/TerseLibrary.cmake made the source."""
    return pathlib.Path(path).parent.name == "joined"


def sources_of(path, root):
    """The sources that a joined source includes, or the source itself."""
    if not is_joined(path):
        return [path]
    return [str(root / name) for name in re.findall(r'^#include "(.*)"', pathlib.Path(path).read_text(), re.MULTILINE)]


@functools.lru_cache(maxsize=None)
def types_of(path):
    """The types that a file has at its top level."""
    text = path.read_text()
    return frozenset({match["type"] for match in TOP_LEVEL.finditer(text)} - {None} | set(ALIAS.findall(text)))


@functools.lru_cache(maxsize=None)
def names_of(path):
    """All names that a file has at its top level."""
    text = path.read_text()
    return types_of(path) | {match["name"] for match in TOP_LEVEL.finditer(text)} - {None} | set(MACRO.findall(text))


def headers_of(path, root, found):
    """Adds the project's headers that the file includes, themselves or by another, to `found`."""
    for name in INCLUDE.findall(path.read_text()):
        header = next((one for one in (root / name, path.parent / name) if one.is_file()), None)
        if header is not None and header not in found:
            found.add(header)
            headers_of(header, root, found)
    return found


def pack(sources, root, folder, flags):
    """Units of the sources, which are compiled with the same flags. No source of a unit has a name that another one or its
    headers have too."""
    packs = []
    for source in sources:
        names = names_of(pathlib.Path(source))
        foreign = frozenset().union(*map(names_of, headers_of(pathlib.Path(source), root, set())))
        # Without the functions that it defines for its headers. A type is either the header's or, hiding it, its own.
        own = names - foreign | types_of(pathlib.Path(source))
        for held, taken, theirs, around in packs:
            if len(held) < SOURCES_A_UNIT and not names & taken and not own & around and not foreign & theirs:
                held.append(source)
                taken |= names
                theirs |= own
                around |= foreign
                break
        else:
            packs.append(([source], set(names), set(own), set(foreign)))
    units = []
    for held, *_ in packs:
        text = "".join(f'#include "{source}"\n' for source in held)
        path = folder / (hashlib.sha256((text + repr(flags)).encode()).hexdigest()[:16] + ".cc")
        path.write_text(text)
        units.append(Unit(f"{held[0]} and {len(held) - 1} more" if len(held) > 1 else held[0], str(path), flags, held))
    return units


def units_of(root, build):
    """Every source of the project that the folder compiles, once; a library's that are compiled with it are not ours."""
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    units, alike, seen = [], {}, set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if pathlib.Path(root).resolve() not in pathlib.Path(entry["file"]).resolve().parents:
            continue
        held = [source for source in sources_of(entry["file"], root) if not source.startswith(str(build))]
        if seen.issuperset(held):
            continue
        seen.update(held)
        flags = flags_of(entry)
        if os.path.relpath(entry["file"], root).startswith(PACKED):
            alike.setdefault(flags, []).append(entry["file"])
        else:
            units.append(Unit(os.path.relpath(entry["file"], build), entry["file"], flags, held))
    for flags, sources in alike.items():
        units += pack(sources, root, folder, flags)
    return units


class Examiner:
    def __init__(self, options, root):
        self.options, self.root = options, root
        self.settings = (root / ".clang-tidy").read_bytes() + options.checks.encode()

    def stamp(self, unit):
        """The file that says that the unit is clean, or None where the preprocessor fails. Comments count: some name checks."""
        run = subprocess.run([self.options.compiler, "-E", "-C", *unit.flags, unit.path], capture_output=True, check=False)
        if run.returncode != 0:
            return None
        text = b"\0".join((self.settings, "\n".join(unit.flags).encode(), run.stdout))
        return self.options.cache / hashlib.sha256(text.replace(str(self.root).encode(), b".")).hexdigest()

    def tidy(self, unit):
        run = subprocess.run([self.options.tidy, "--quiet", f"--config-file={self.root}/.clang-tidy",
                              f"--checks={self.options.checks}", unit.path, "--", *unit.flags],
                             capture_output=True, text=True, check=False)
        text = run.stdout if run.stdout.strip() else COUNT.sub("", run.stderr)
        return run.returncode, text if text.strip() else f"{unit.name}: clang-tidy ended with {run.returncode}\n"

    def examine(self, unit):
        """(seconds, whether the cache knew it, what clang-tidy said against it)."""
        begin = time.monotonic()
        stamp = self.stamp(unit)
        if stamp is not None and stamp.exists():
            stamp.touch()
            return time.monotonic() - begin, True, ""
        code, text = self.tidy(unit)
        if code != 0 and "[clang-diagnostic-error]" in text and len(unit.sources) > 1 and not is_joined(unit.path):
            results = [self.tidy(Unit(source, source, unit.flags, [source])) for source in unit.sources]
            code = max(result[0] for result in results)
            text = "".join(result[1] for result in results)
        if code == 0 and stamp is not None:
            stamp.touch()
        return time.monotonic() - begin, False, text if code != 0 else ""


def drop_old_stamps(cache):
    oldest = time.time() - STAMP_DAYS * 24 * 3600
    for stamp in cache.iterdir():
        if stamp.stat().st_mtime < oldest:
            stamp.unlink(missing_ok=True)


def report(text, root, printed):
    """Prints the findings that no other unit had; a header's are in many. Returns how many those are."""
    new = [finding for finding in FINDING.split(text) if finding.strip() and finding not in printed]
    printed.update(new)
    for finding in new:
        print(finding.replace(f"{root}/", "").rstrip(), flush=True)
    return len(new)


def parse_arguments():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "terse-tidy"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of the configured preset `tidy`")
    parser.add_argument("--checks", default="", help="added to the checks of .clang-tidy")
    parser.add_argument("--only", default="", metavar="REGEX", help="units with a source that matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="units at a time (default: the processors)")
    parser.add_argument("--cache", type=pathlib.Path, default=cache, help="default: %(default)s")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2],
                        help="folder of the tree, which has .clang-tidy (default: %(default)s)")
    parser.add_argument("--times", action="store_true", help="say what each unit took")
    parser.add_argument("--tidy", default="clang-tidy-14")
    parser.add_argument("--compiler", default="clang++-14")
    return parser.parse_args()


def main():
    options = parse_arguments()
    root, options.build = options.root.resolve(), options.build.resolve()
    options.cache.mkdir(parents=True, exist_ok=True)
    drop_old_stamps(options.cache)
    examiner, begin = Examiner(options, root), time.monotonic()
    units = [unit for unit in units_of(root, options.build)
             if any(re.search(options.only, os.path.relpath(source, root)) for source in unit.sources)]
    if not units:
        sys.exit(f"tests/lint/tidy.py: no source of {options.build} matches '{options.only}'")
    printed, findings, known = set(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        examined = {pool.submit(examiner.examine, unit): unit for unit in units}
        for done in concurrent.futures.as_completed(examined):
            unit, (seconds, was_known, text) = examined[done], done.result()
            if options.times:
                print(f"tidy: {seconds:.1f} s {unit.name.replace(f'{root}/', '')}", flush=True)
            known += was_known
            findings += report(text, root, printed)
    print(f"tidy: {sum(len(unit.sources) for unit in units)} sources in {len(units)} units, {known} of them known as clean, "
          f"{findings} findings, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
