"""What tests/docs.sh would run: the documents can be read, and a directive that is wrong is named with its line.

usage: blocks_test.py SOURCE   (run by ctest; tests/docs.sh runs the commands)
"""

import pathlib
import re
import sys
import tempfile
import unittest

from blocks import DocumentError, Reader, Step, write

SOURCE = pathlib.Path(sys.argv[1])
HEAD = "<!-- machines: one two -->\n"


def steps_of(text):
    return Reader().read(HEAD + text).steps


class Blocks(unittest.TestCase):
    def test_commands_run_where_the_directive_says(self):
        steps = steps_of('<!-- run: on=two,one shows="a b" -->\n```sh\nls\npwd\n```\n')
        self.assertEqual(steps, [Step("run", 3, name, "ls\npwd\n", "a b", "") for name in ("two", "one")])

    def test_without_a_machine_they_run_on_the_first(self):
        self.assertEqual(steps_of("<!-- run: until=x -->\n```sh\nls\n```\n"), [Step("run", 3, "one", "ls\n", "", "x")])

    def test_commands_in_the_comment_run_and_are_not_shown(self):
        self.assertEqual(steps_of("<!-- run: on=two\nls\npwd\n-->\n"), [Step("run", 2, "two", "ls\npwd\n", "", "")])

    def test_commands_that_are_not_run_have_a_reason(self):
        self.assertEqual(steps_of("<!-- not run: takes hours -->\n```sh\nls\n```\n"),
                         [Step("skip", 3, "", "takes hours", "", "")])

    def test_files_are_brought(self):
        self.assertEqual(steps_of("<!-- bring: from=one:/a to=two:/b -->\n"),
                         [Step("bring", 2, "", "one:/a\ntwo:/b\n", "", "")])

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
                ("<!-- not run: -->\n" + block, 2, "needs a reason"),
                ("<!-- not-run: why -->\n" + block, 2, "cannot be read"),
                ("<!-- bring: from=one:/a -->\n", 2, "from= and to="),
                ("<!-- bring: from=one:/a to=three:/b -->\n", 2, "no machine 'three'"),
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
                             {"kind": "run", "line": "3", "machine": "two", "text": "ls\n", "shows": "x", "until": ""})


class Documents(unittest.TestCase):
    def test_every_document_with_machines_can_be_read_and_is_run(self):
        script = (SOURCE / "tests" / "docs.sh").read_text()
        documents = [path for path in (SOURCE / "docs").rglob("*.md") if "<!-- machines:" in path.read_text()]
        self.assertGreaterEqual(len(documents), 3)
        for document in documents:
            with self.subTest(document=document.name):
                self.assertTrue(any(step.kind == "run" for step in Reader().read(document.read_text()).steps))
                self.assertIn(str(document.relative_to(SOURCE)), script)

    def test_every_tutorial_has_machines(self):
        for document in (SOURCE / "docs" / "tutorials").glob("*.md"):
            self.assertIn("<!-- machines:", document.read_text(), document.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
