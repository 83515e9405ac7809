"""What mkdocs asks of this repository: navigation, pages that are made, and links as the site has them."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import navigation
import places
import reference
from markdown_of_site import converted
from places import ROOT

PACKAGE = ROOT / "torch_backend/fccl"
PYTHON_PAGE = "reference/python_functions.md"
# Modules that programs import by name.
MODULES = ("fsdp", "rendezvous", "torchft")
_LANGUAGES = {".h": "cpp", ".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".sh": "bash", ".yaml": "yaml"}
_FENCE = "`" * 8
# The build writes its module, so that no tool finds it in the sources.
_VERSION = """\
<h3 id="fccl.__version__" class="doc doc-heading" markdown="span">`fccl.__version__`</h3>

A text such as "0.1.0", which [fccl.version][] gives, too.
"""
# Its arguments are those of __new__, and its methods those of torch's backends.
_OPTIONS = {"ProcessGroup": "    options: {members: [__new__], filters: []}"}
# The repository's page of each page of the site that shows one.
_origins: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Sets the navigation, and the selector of versions where mike builds one."""
    functions = [{title: page} for page, title, _ in reference.PAGES.values()]
    functions.append({"Python functions": PYTHON_PAGE})
    config.nav = navigation.make(ROOT / "docs", {"Reference": {"Functions": functions}})
    project = [{title: places.place_of(path)} for path, title in places.PROJECT.items()]
    config.nav.append({"Project": project})
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made: references, folders, and files outside docs/."""
    _origins.clear()
    for file in files.documentation_pages():
        _origins[file.src_uri] = f"docs/{file.src_uri}"
    for name, text in made_pages():
        files.append(File.generated(config, name, content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page of the repository as mkdocs reads it, with links to pages of the site."""
    origin = _origins.get(page.file.src_uri)
    return converted(places.with_links_of_site(markdown, origin)) if origin else markdown


def made_pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page that no file of docs/ is."""
    (ROOT / "build/doxygen").mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "tools/site/Doxyfile"], cwd=ROOT, check=True)
    yield from reference.make(ROOT / "build/doxygen/xml", ROOT / "include/fccl").items()
    yield PYTHON_PAGE, python_page()
    for path in places.folders():
        yield places.place_of(path), page_of_folder(ROOT / path)
    for path in places.outside():
        page = places.readme_of(path)
        if page.endswith(".md"):
            _origins[places.place_of(path)] = page
            yield places.place_of(path), (ROOT / page).read_text()
        else:
            yield places.place_of(path), "\n".join(text_of_file(path))


def python_page() -> str:
    """What mkdocstrings fills in for each name of the package, and for its modules."""
    lines = ["# Python functions", "", "For programmers in Python: the package `fccl`.", "", "## fccl", ""]
    for name in public_names():
        lines += [_VERSION if name == "__version__" else f"::: fccl.{name}", _OPTIONS.get(name, ""), ""]
    for module in MODULES:
        lines += [f"::: fccl.{module}", "    options: {heading_level: 2}", ""]
    return "\n".join(lines)


def public_names() -> list[str]:
    """`fccl.__all__`, without importing the package."""
    for statement in ast.parse((PACKAGE / "__init__.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return ast.literal_eval(statement.value)
    raise ValueError(f"{PACKAGE}/__init__.py has no __all__")


def page_of_folder(folder: Path) -> str:
    """What a folder of docs/ holds: its pages by their titles, other files by their names."""
    reader = f"For those who look for one of the files of `{folder.relative_to(ROOT)}`."
    lines = [f"# {folder.name.capitalize()}", "", reader, ""]
    for path in sorted(folder.iterdir()):
        lines.append(f"- [{navigation.title_of(path) if path.suffix == '.md' else path.name}]({path.name})")
    return "\n".join([*lines, ""])


def text_of_file(path: str) -> Iterator[str]:
    """A page for a file, or for a folder that has no page: the names of its files."""
    yield from ["---", "search:", "  exclude: true", "---", "", f"# {path}", ""]
    file = ROOT / path
    if file.is_dir():
        yield from (f"- `{each.relative_to(file)}`" for each in sorted(file.rglob("*")) if each.is_file())
    else:
        yield from [_FENCE + _LANGUAGES.get(file.suffix, "text"), file.read_text(), _FENCE]
