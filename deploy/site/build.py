#!/usr/bin/python3
"""Builds the site of the documentation with MkDocs. Called by deploy/site.sh, which sees to the packages.

usage: build.py OUT MERMAID   (MERMAID is its file, minified)
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

import cpp_reference
import stage

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MAP = pathlib.Path("docs/README.md")


class BuildError(Exception):
    """The site could not be built, with the reason."""


def nav_of(text, documents):
    """The navigation, from the headings and lists of docs/README.md, in which every document has its place."""
    nav, named = [], set()
    for line in text.splitlines():
        heading, entry = re.fullmatch(r"## (.+)", line), re.match(r"- \[(.+?)\]\((\S+?)\): ", line)
        if heading:
            nav.append({heading.group(1): []})
        elif entry:
            path = os.path.normpath(MAP.parent / entry.group(2))
            named.add(path)
            next(iter(nav[-1].values())).append({entry.group(1): path})
    missing = sorted({str(path) for path in documents} - named)
    if missing:
        raise BuildError(f"{MAP} names no place for {', '.join(missing)}")
    return nav


def library_nav(reference):
    """The part of `nav` with the pages of the C++ library."""
    folders = {}
    for path in reference.pages:
        inner = path.relative_to(cpp_reference.FOLDER)
        if inner.name != "index.md":
            folders.setdefault(str(inner.parent), []).append({inner.name.removesuffix(".md"): str(path)})
    entries = [{folder: pages} for folder, pages in folders.items()]
    return {"C++": [{"Headers": str(cpp_reference.FOLDER / "index.md")}, *entries]}


def write_configuration(work, reference, documents):
    # The template names functions of Python, which only MkDocs itself reads; here they stay the words that they are.
    class Loader(yaml.SafeLoader):
        pass

    class Dumper(yaml.SafeDumper):
        pass

    class Name(str):
        pass

    Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda loader, suffix, node: Name(suffix))
    Dumper.add_representer(Name, lambda dumper, name: dumper.represent_scalar(f"tag:yaml.org,2002:python/name:{name}", ""))
    settings = yaml.load((HERE / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    nav = nav_of((ROOT / MAP).read_text(encoding="utf-8"), documents)
    for part in nav:
        part.get("Reference", []).append(library_nav(reference))
    settings.update(nav=nav, docs_dir=str(work / "docs"), site_dir=str(work / "site"))
    settings["theme"]["custom_dir"] = str(HERE / "theme")
    (work / "mkdocs.yml").write_text(yaml.dump(settings, Dumper=Dumper, sort_keys=False), encoding="utf-8")


def build(out, mermaid, work):
    reference = cpp_reference.make(ROOT, work / "doxygen")
    if reference.warnings:
        raise BuildError("Doxygen warns:\n" + "\n".join(reference.warnings))
    staged = stage.Stage(ROOT, work / "docs", reference.pages).run()
    for path, text in reference.pages.items():
        staged.write(path, staged.page(path, text))
    assets = work / "docs" / "assets"
    shutil.copytree(HERE / "assets", assets)
    shutil.copyfile(mermaid, assets / "mermaid.min.js")
    write_configuration(work, reference, staged.documents)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", work / "mkdocs.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = [
            line for line in re.sub(r"\x1b\[\d*m", "", done.stderr).splitlines() if not line.startswith(("INFO", "  - "))
        ]
        raise BuildError("mkdocs says:\n" + "\n".join(said))
    search = work / "site" / "search"
    index = json.loads((search / "search_index.json").read_text(encoding="utf-8"))
    (search / "search_index.js").write_text(f"window.terseSearchIndex = {json.dumps(index)};\n", encoding="utf-8")
    if out.exists():
        shutil.rmtree(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(work / "site", out)
    return reference


def main():
    out, mermaid = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="terse-site.") as work:
        reference = build(out, mermaid, pathlib.Path(work))
    pages, headers, bare = sum(1 for _ in out.rglob("*.html")), len(reference.pages) - 1, len(reference.undocumented)
    print(f"site: {pages} pages; {headers} headers of the C++ library, {bare} declarations without a comment of their own")
    print(f"site: start with {out}/index.html")


if __name__ == "__main__":
    try:
        main()
    except (BuildError, stage.StageError, cpp_reference.HeaderError) as error:
        sys.exit(f"deploy/site.sh: {error}")
