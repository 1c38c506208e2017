#!/usr/bin/env python3
"""Finds names that two sources of one test program define and that would meet where the sources are compiled together.

Tests that are declared with UNITY (terse_test, cmake/TerseLibrary.cmake) are compiled eight sources at a time, and share
their anonymous namespaces then. A second definition is often an error, but a function of the same name with other
parameters can take over calls in silence. Prints one line for each such name; exit code 1 when there are any.

usage: unity_names.py ROOT
"""
import collections
import os
import re
import sys

DECLARATION = re.compile(r"terse_test\((\w+) UNITY\b(.*?)\)\n", re.S)
SOURCE = re.compile(r'[\w./${}"-]+\.cc\b')
INCLUDED = re.compile(r'#include "((?:tests|bench)/[^"]*\.h)"')
# At the start of a line: a function or constant with its type before it, or a type. A second alias of the same type is
# no conflict, and of another type an error.
DEFINED = (
    re.compile(r"^(?!(?:using|namespace|TEST|TEST_F|TEST_P|return|class|struct|enum|typedef|extern|friend|public|private|"
               r"protected|case|default)\b)[A-Za-z_][\w:<>,&* ]*?[&* ](\w+)(?:\(|\[| =|\{)", re.M),
    re.compile(r"^(?:class|struct|enum class|enum) (\w+)(?! *;)", re.M),
    re.compile(r"^MATCHER(?:_P\d?)?\((\w+)", re.M),
)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def unity_tests(root):
    """Yields the name and the sources of each such test, with the headers of tests that they include."""
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name != "CMakeLists.txt" and not name.endswith(".cmake"):
                continue
            for test, body in DECLARATION.findall(read(os.path.join(folder, name))):
                sources = [source.replace('"', "").replace("${CMAKE_CURRENT_LIST_DIR}/", "")
                           for source in SOURCE.findall(body)]
                paths = {os.path.normpath(os.path.join(folder, source)) for source in sources}
                for path in list(paths):
                    paths.update(os.path.normpath(os.path.join(root, header)) for header in INCLUDED.findall(read(path)))
                yield test, sorted(paths)


def conflicts(paths):
    """Yields each name that is defined twice, with where. A source defines what its own header declares."""
    places = collections.defaultdict(set)
    for path in paths:
        text = read(path)
        for pattern in DEFINED:
            for name in pattern.findall(text):
                places[name].add(path)
    for name, where in sorted(places.items()):
        if len({os.path.splitext(path)[0] for path in where}) > 1:
            yield name, sorted(where)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    tests = list(unity_tests(root))
    if not tests:
        sys.exit(f"unity_names.py: no test below {root} is declared with UNITY; is this the root of the tree?")
    found = 0
    for test, paths in tests:
        for name, where in conflicts(paths):
            found += 1
            print(f"{test}: '{name}' is defined in {' and '.join(os.path.relpath(path, root) for path in where)}; "
                  "rename one")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
