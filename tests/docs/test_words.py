"""Checks what pages say beside their blocks: links, settings, and the words of ./dev."""

import re

import pytest
from pages import PAGES, ROOT, blocks_of, commands_of

LINK = re.compile(r"\]\(([^)\s]+)\)")
DEV_WORDS = re.compile(r"\./dev (\w+)(?: (quick|torch|all|debug|asan|tsan)\b)?")
SETTING = re.compile(r"\bFCCL_[A-Z][A-Z_]*[A-Z]\b")
# Files that read or define the names which pages may mention.
NAMING = (
    "include/fccl/fccl.h",
    "src/settings/*.cpp",
    "perf_tests/**/*.cpp",
    "CMakeLists.txt",
    "src/*.cmake",
    ".ci/*.sh",
    "tools/cluster/*.py",
    "tools/gpu/*.py",
    "deploy/**/*.sbatch",
    "deploy/**/*.sh",
    "plugins/**/CMakeLists.txt",
    "trainer/fsdp/tests/*.py",
)


def anchors_of(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    folder = (ROOT / page).parent
    for target in LINK.findall((ROOT / page).read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = folder / path if path else ROOT / page
        assert file.exists(), f"{page} links to {target}, but there is no such file"
        assert not anchor or anchor in anchors_of(file.read_text()), f"{page}: {target} has no such heading"


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_that_a_page_names_is_read_by_something(page):
    known = {
        name
        for pattern in NAMING
        for path in ROOT.glob(pattern)
        for name in SETTING.findall(path.read_text())
    }
    unknown = set(SETTING.findall((ROOT / page).read_text())) - known
    assert not unknown, f"{page} names {', '.join(sorted(unknown))}, which nothing reads"


@pytest.mark.parametrize("page", PAGES)
def test_every_word_of_dev_that_a_page_names_is_one_that_dev_has(page):
    dev = (ROOT / "dev").read_text()
    for word, second in DEV_WORDS.findall((ROOT / page).read_text()):
        assert re.search(rf"^  {word}( \|.*)?\) ", dev, re.M), f"{page} says ./dev {word}"
        assert re.search(rf"\b{second}\b", dev), f"{page} says ./dev {word} {second}"


def test_a_comment_or_a_continued_line_is_no_command_of_its_own(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("```sh\n# first\nls -l \\\n  -a    # both\n```\n")
    monkeypatch.setattr("pages.ROOT", tmp_path)
    (block,) = blocks_of("page.md")
    assert commands_of(block) == ["ls -l -a"]
