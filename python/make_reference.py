"""Prints docs/PYTHON_API.md: every public name of the package, from its docstring. PYTHONPATH=python make_reference.py"""

import ast
import inspect
import pathlib
import re

import terse
import terse.outer

HEAD = """# The package `terse`, name by name

Made by `PYTHONPATH=python /usr/bin/python3 python/make_reference.py > docs/PYTHON_API.md` from the docstrings; [PYTHON.md](PYTHON.md) is the
introduction.
"""
SECTIONS = (
    ("Taking part in runs", ("join", "attach", "Fleet", "Round", "serve_evaluator", "Evaluated")),
    ("Making runs", ("Run",)),
    ("Simulation", ("simulate", "Work", "Simulation")),
    ("Reading runs", ("open", "StoredRun", "Table")),
    ("Errors", ("TerseError", "ClientError", "RunMismatch", "CodecError", "MalformedMessage", "ForkedProcess")),
)
# Modules that import what this package does not require. They are read from their source, so that the document is the same
# wherever it is made.
OPTIONAL = (("In a Trainer of Lightning", "lightning"), ("In a Trainer of Hugging Face", "huggingface"),
            ("In a Flower app", "flower"), ("For Weights & Biases", "wandb"))
# Classes whose objects come from functions: nobody calls them.
MADE_ELSEWHERE = ("Evaluated", "Feedback", "Fleet", "Round", "Simulation", "StoredRun", "Table", "UpdateHistory", "Work")


def documented(docstring):
    """A docstring as Markdown, with paragraphs of parameters or attributes, "name: text. other: text.", as lists."""
    paragraphs = []
    for paragraph in docstring.split("\n\n"):
        words = " ".join(paragraph.split())
        parts = re.split(r"(?:^|(?<=\. ))([a-z_]+(?:, [a-z_]+)*): ", words)
        if not parts[0]:
            named = zip(parts[1::2], parts[2::2])
            paragraph = "\n".join(f"- `{names.replace(', ', '`, `')}`: {text.strip()}" for names, text in named)
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def signature_of(thing):
    """With the defaults, and without the types, which the text says in words."""
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(thing).parameters.values()
                  if p.name != "self"]
    return str(inspect.Signature(parameters))


def members_of(cls):
    """The methods and properties that a class itself has and that are public, in the order of the source."""
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property) and inspect.getdoc(member):
            yield f"`{cls.__name__}.{name}`", inspect.getdoc(member)
        elif inspect.isfunction(member):
            yield f"`{cls.__name__}.{name}{signature_of(member)}`", inspect.getdoc(member)


def entry(name, thing, level="###", package="terse"):
    is_plain = inspect.isclass(thing) and (issubclass(thing, Exception) or thing.__init__ is object.__init__)
    is_made = inspect.isclass(thing) and name in MADE_ELSEWHERE
    title = name if is_plain or is_made else f"{name}{signature_of(thing)}"
    lines = [f"{level} `{package}.{title}`", "", documented(inspect.getdoc(thing)), ""]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for member, text in members_of(thing):
            lines += [f"- {member}", ""] + [f"  {line}".rstrip() for line in documented(text).splitlines()] + [""]
    return lines


def source_signature(function):
    """As signature_of, of a function's syntax tree."""
    arguments = function.args
    for each in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
        each.annotation = None
    arguments.args = [each for each in arguments.args if each.arg != "self"]
    return f"({ast.unparse(arguments)})"


def source_entry(node, package):
    """As entry, of the syntax tree of a class or function."""
    is_class = isinstance(node, ast.ClassDef)
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)] if is_class else []
    maker = next((each for each in methods if each.name == "__init__"), None) if is_class else node
    title = f"{package}.{node.name}{source_signature(maker) if maker else ''}"
    lines = [f"### `{title}`", "", documented(ast.get_docstring(node)), ""]
    for method in methods:
        if not method.name.startswith("_") and ast.get_docstring(method):
            lines += [f"- `{node.name}.{method.name}{source_signature(method)}`", ""]
            lines += [f"  {line}".rstrip() for line in documented(ast.get_docstring(method)).splitlines()] + [""]
    return lines


def optional_section(title, module):
    tree = ast.parse((pathlib.Path(terse.__file__).parent / f"{module}.py").read_text(encoding="utf-8"))
    lines = [f"## {title}", "", ast.get_docstring(tree), ""]
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            lines += source_entry(node, f"terse.{module}")
    return lines


def main():
    lines = [HEAD]
    for title, names in SECTIONS:
        lines += [f"## {title}", ""]
        for name in names:
            lines += entry(name, getattr(terse, name))
    lines += ["## An outer step", "", inspect.getdoc(terse.outer), ""]
    lines += entry("OuterOptimizer", terse.outer.OuterOptimizer, package="terse.outer")
    for title, module in OPTIONAL:
        lines += optional_section(title, module)
    lines += ["## Codecs", "", inspect.getdoc(terse.codecs), ""]
    for name in ("Codec", "Feedback", "UpdateHistory"):
        lines += entry(name, getattr(terse.codecs, name), package="terse.codecs")
    lines += ["### The codecs", ""]
    for name, function in vars(terse.codecs).items():
        if inspect.isfunction(function):
            lines += [f"- `terse.codecs.{name}{signature_of(function)}`: {inspect.getdoc(function)}"]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
