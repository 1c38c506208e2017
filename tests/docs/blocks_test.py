"""What tests/docs.sh and tests/docs/tree.sh run: every block of commands in the documents is run or says why not, and a
directive that is wrong is named with its line.

usage: blocks_test.py SOURCE   (run by ctest; those two run the commands)
"""

import pathlib
import re
import sys
import tempfile
import unittest

from blocks import PATIENCE, TREE, DocumentError, Reader, Step, where, write

SOURCE = pathlib.Path(sys.argv[1])
HEAD = "<!-- machines: one two -->\n"
# The documents whose commands are for readers. The commands of bench/RESULTS.md and tests/RELIABILITY.md take hours.
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "compression/README.md", *sorted(
    str(path.relative_to(SOURCE)) for folder, name in [("docs", "*.md"), ("deploy", "README*")]
    for path in (SOURCE / folder).rglob(name))]


def steps_of(text):
    return Reader().read(HEAD + text).steps


def run(line, machine, text, **values):
    return Step("run", line, machine, text, **{"seconds": PATIENCE, **values})


class Blocks(unittest.TestCase):
    def test_commands_run_where_the_directive_says(self):
        steps = steps_of('<!-- run: on=two,one shows="a b" -->\n```sh\nls\npwd\n```\n')
        self.assertEqual(steps, [run(3, name, "ls\npwd\n", shows="a b") for name in ("two", "one")])

    def test_without_a_machine_they_run_on_the_first(self):
        self.assertEqual(steps_of("<!-- run: until=x -->\n```sh\nls\n```\n"), [run(3, "one", "ls\n", until="x")])

    def test_commands_stay_and_take_long_if_they_say_so(self):
        self.assertEqual(steps_of("<!-- run: stays=x seconds=900 -->\n```sh\nls\n```\n"),
                         [run(3, "one", "ls\n", stays="x", seconds=900)])

    def test_commands_in_the_comment_run_and_are_not_shown(self):
        self.assertEqual(steps_of("<!-- run: on=two\nls\npwd\n-->\n"), [run(2, "two", "ls\npwd\n")])

    def test_commands_that_are_not_run_have_a_reason(self):
        self.assertEqual(steps_of("<!-- not run: takes hours -->\n```sh\nls\n```\n"),
                         [Step("skip", 3, "", "takes hours")])

    def test_files_are_brought(self):
        self.assertEqual(steps_of("<!-- bring: from=one:/a to=two:/b -->\n"),
                         [Step("bring", 2, "", "one:/a\ntwo:/b\n")])
        self.assertEqual(steps_of("<!-- bring: from=source:. to=two:/b -->\n")[0].text, "source:.\ntwo:/b\n")

    def test_an_indented_block_loses_its_indent_alone(self):
        self.assertEqual(steps_of("<!-- run: -->\n   ```sh\n   if x; then\n     y\n   fi\n   ```\n")[0].text,
                         "if x; then\n  y\nfi\n")

    def test_other_blocks_and_comments_are_the_readers(self):
        self.assertEqual(steps_of("<!-- written in May -->\n```toml\n<!-- run: on=nobody -->\n```\n"), [])

    def test_mistakes_are_named_with_their_line(self):
        block = "```sh\nls\n```\n"
        for text, line, words in [
                (block, 2, "without a directive"),
                ("<!-- run: on=one -->\n", 2, "no block of commands"),
                ("<!-- run: on=one -->\n<!-- run: on=two -->\n" + block, 2, "no block of commands"),
                ("<!-- run: on=three -->\n" + block, 3, "no machine 'three'"),
                ("<!-- run: at=one -->\n" + block, 2, "'at=one'"),
                ("<!-- run: on=one on=two -->\n" + block, 2, "'on=two'"),
                ("<!-- run: seconds=soon -->\n" + block, 3, "'seconds=soon'"),
                ("<!-- run: until=x stays=y -->\n" + block, 3, "one of them"),
                ("<!-- not run: -->\n" + block, 2, "needs a reason"),
                ("<!-- not-run: why -->\n" + block, 2, "cannot be read"),
                ("<!-- bring: from=one:/a -->\n", 2, "from= and to="),
                ("<!-- bring: from=one:/a to=three:/b -->\n", 2, "no machine 'three'"),
                ("<!-- bring: from=one:/a to=source:. -->\n", 2, "no machine 'source'"),
                ("<!-- run: on=one\n", 2, "has no end"),
                ("```sh\nls\n", 2, "has no end"),
        ]:
            with self.subTest(text=text), self.assertRaises(DocumentError) as error:
                steps_of(text)
            self.assertRegex(str(error.exception), rf"^{line}: .*{re.escape(words)}")

    def test_steps_become_files(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "steps"
            write(Reader().read(HEAD + "<!-- run: on=two shows=x -->\n```sh\nls\n```\n"), place)
            self.assertEqual((place / "machines").read_text(), "one\ntwo\n")
            self.assertEqual({path.name: path.read_text() for path in (place / "000").iterdir()},
                             {"kind": "run", "line": "3", "machine": "two", "text": "ls\n", "shows": "x", "until": "",
                              "stays": "", "seconds": str(PATIENCE)})

    def test_the_trees_steps_are_others_than_the_machines(self):
        reader = Reader().read("<!-- machines: one tree -->\n<!-- run: -->\n```sh\na\n```\n<!-- run: on=tree\nb\n-->\n"
                               "<!-- bring: from=tree:c to=one:c -->\n")
        for tree, texts in [(False, ["a\n", "tree:c\none:c\n"]), (True, ["b\n"])]:
            with self.subTest(tree=tree), tempfile.TemporaryDirectory() as folder:
                place = pathlib.Path(folder) / "steps"
                write(reader, place, tree)
                self.assertEqual([path.read_text() for path in sorted(place.glob("*/text"))], texts)
                self.assertEqual((place / "machines").read_text(), "one\n")


class Documents(unittest.TestCase):
    def test_every_block_is_run_or_says_why_not(self):
        # Reader refuses a block without a directive.
        runners = {}
        for tree, script, of in [(False, "docs.sh", r"readonly DOCUMENTS=\((.*?)\)"),
                                 (True, "docs/CMakeLists.txt", r"foreach\(document (.*?)\)")]:
            text = (SOURCE / "tests" / script).read_text()
            runners[tree] = re.search(of, text, re.DOTALL).group(1).split()
        count = 0
        for document in DOCUMENTS:
            with self.subTest(document=document):
                steps = Reader().read((SOURCE / document).read_text()).steps
                count += len(steps)
                for tree in {where(step) == TREE for step in steps if step.kind != "skip"}:
                    self.assertIn(document, runners[tree])
        self.assertGreater(count, 100)

    def test_every_tutorial_has_machines(self):
        for document in (SOURCE / "docs" / "tutorials").glob("*.md"):
            self.assertIn("<!-- machines:", document.read_text(), document.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
