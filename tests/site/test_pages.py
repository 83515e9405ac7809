"""The pages of the site: no broken link, an entry for each public function, and all that a page has."""

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import check_links
import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow
HEADERS = ROOT / "include" / "fccl"
PACKAGE = ROOT / "torch_backend" / "fccl"
# clang-format puts functions of a namespace into the first column, and those of a class into the third.
CPP_FUNCTION = re.compile(r"^(?:  )?(?:static |inline )*[\w:]+(?:<.*>)?[&*]* (\w+)\(", re.MULTILINE)
CPP_CLASS = re.compile(r"^(?:class|struct) (?:\[\[nodiscard\]\] )?(\w+)(?=[^;]*\{$)", re.MULTILINE)
COUNTED = ("h1", "h2", "h3", "ul", "ol", "li", "table", "tr", "pre", "blockquote", "img")


class Shape(HTMLParser):
    """How many elements of each kind a page has; of a page of the site, its article."""

    def __init__(self, text: str, of_site: bool):
        super().__init__()
        self.counts = dict.fromkeys(COUNTED, 0)
        self._inside = not of_site
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self._inside = self._inside or tag == "article"
        if self._inside and tag in COUNTED:
            self.counts[tag] += 1

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "article"


def headings_of(site: Path, page: str) -> set[str]:
    return check_links.read(site / page / "index.html").headings


def public_part(text: str) -> str:
    """The header without what is private."""
    return re.sub(r"^ private:.*?(?=^\};)", "", text, flags=re.MULTILINE | re.DOTALL)


def test_no_link_is_broken_and_nothing_comes_from_elsewhere(site):
    assert list(check_links.faults(site)) == []
    assert len(check_links.pages_of(site)) > len(list((ROOT / "docs").rglob("*.md")))


def test_every_function_of_c_has_an_entry(site):
    functions = re.findall(r"^FCCL_API [^(]*\b(fccl\w+)\(", (HEADERS / "fccl.h").read_text(), re.MULTILINE)
    assert len(functions) == (HEADERS / "fccl.h").read_text().count("\nFCCL_API ") > 50
    missing = set(functions) - headings_of(site, "reference/c_functions")
    assert not missing


@pytest.mark.parametrize("header", ["fccl.hpp", "operators.hpp", "memory.hpp"])
def test_every_function_and_class_of_cpp_has_an_entry(site, header):
    text = public_part((HEADERS / header).read_text())
    names = set(CPP_FUNCTION.findall(text)) | set(CPP_CLASS.findall(text))
    headings = {heading.rpartition("::")[2] for heading in headings_of(site, "reference/cpp_functions")}
    assert len(names) > 3
    assert not names - headings


def test_every_name_of_the_python_package_has_an_entry(site):
    text = (PACKAGE / "__init__.py").read_text()
    names = re.findall(r'"(\w+)"', re.search(r"__all__ = \[(.*?)\]", text, re.DOTALL)[1])
    assert "metrics" in names
    missing = {f"fccl.{name}" for name in names} - headings_of(site, "reference/python_functions")
    assert not missing


def public_definitions(module: Path) -> list[str]:
    """The classes and functions that a module defines for others."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    defined = [each.name for each in ast.parse(module.read_text()).body if isinstance(each, kinds)]
    return [f"fccl.{module.stem}.{name}" for name in defined if not name.startswith("_")]


def test_every_class_and_function_of_the_modules_of_the_package_has_an_entry(site):
    modules = {path for path in PACKAGE.glob("*.py") if not path.name.startswith("_")}
    modules.remove(PACKAGE / "demo.py")  # which is a program
    names = {name for module in modules for name in public_definitions(module)}
    assert "fccl.fsdp.AllGather" in names
    assert not names - headings_of(site, "reference/python_functions")


def test_the_text_of_a_comment_stands_at_its_function(site):
    text = re.sub(r"<[^>]+>", "", (site / "reference/c_functions/index.html").read_text())
    entry = " ".join(text[text.index("fcclResult_t fcclCommGetDeadRanks") :].split())
    assert "Lists the ranks whose processes ended without finalizing or destroying comm" in entry[:600]


@pytest.mark.parametrize("page", ["c_functions", "cpp_functions"])
def test_a_comment_is_shown_as_it_was_written(site, page):
    text = (site / "reference" / page / "index.html").read_text()
    article = re.search(r"<article.*</article>", text, re.DOTALL)[0]
    article = re.sub(r"<code.*?</code>", "", article, flags=re.DOTALL)
    assert not re.findall(r".{20}\\.{20}|.{20}@\w+.{20}|.{20}<em>.{20}", article)
    assert page != "c_functions" or "An error leaves *newcomm = NULL, and" in article


def test_every_page_has_all_its_lists_tables_and_blocks(site):
    """As another reader of Markdown, which follows GitHub's rules, sees them."""
    markdown_it = pytest.importorskip("markdown_it", reason="markdown-it-py is in build/site-venv only")
    reader = markdown_it.MarkdownIt("commonmark").enable("table")
    differing = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        place = page.relative_to(ROOT / "docs").with_suffix("")
        shown = site / (place.parent if place.name == "index" else place) / "index.html"
        wanted = Shape(reader.render(page.read_text()), of_site=False).counts
        found = Shape(shown.read_text(), of_site=True).counts
        if wanted != found:
            differing[str(page)] = (wanted, found)
    assert differing == {}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('<a href="missing/">x</a>', "index.html links to missing/: there is no such file"),
        ('<a href="#nowhere">x</a>', "index.html links to #nowhere: the page has no such anchor"),
        ('<script src="//cdn.invalid/a"></script>', "index.html fetches //cdn.invalid/a from elsewhere"),
        ('<img src="gone.png">', "index.html fetches gone.png: there is no such file"),
        ('<a href="https://example.org">x</a><p id="y"><a href="#y">x</a>', None),
    ],
)
def test_a_broken_link_is_named(tmp_path, text, fault):
    (tmp_path / "index.html").write_text(text)
    assert list(check_links.faults(tmp_path)) == ([fault] if fault else [])
