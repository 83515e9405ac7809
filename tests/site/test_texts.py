"""What the site makes of texts: comments for Doxygen, GitHub's Markdown, the navigation, links."""

import doxygen_filter
import markdown_of_site
import navigation
import places
import pytest
from conftest import ROOT


def pages_of(entries):
    for entry in entries:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            yield from [target] if isinstance(target, str) else pages_of(target)


def test_the_comment_of_a_declaration_is_marked_and_escaped():
    text = "#pragma once\n/* Sets *p, as in `a<b>`, if n < 2. */\nint f(int* p);\n"
    assert doxygen_filter.filtered(text).splitlines()[1] == "/** Sets *p, as in `a\\<b\\>`, if n \\< 2. */"


def test_a_comment_behind_a_field_belongs_to_the_field():
    assert doxygen_filter.filtered("\n  int a; // the first\n") == "\n  int a; /**< the first */\n"


@pytest.mark.parametrize("between", ["", "/* An introduction. */\n", "// An introduction.\n"])
def test_sections_and_their_introductions_stay_plain(between):
    text = f"\n/* ---- Types ---- */\n{between}\n/* A type. */\ntypedef int t;\n"
    assert doxygen_filter.filtered(text) == text.replace("/* A type.", "/** A type.")


def test_terms_of_a_comment_are_a_list_and_its_code_is_code():
    lines = ["Calls:", "  first   does one", "          and two;", "  second  does none", "", "   f(x);"]
    assert doxygen_filter.as_doxygen(lines) == [
        "Calls:",
        " - <b>first</b> – does one",
        "   and two;",
        " - <b>second</b> – does none",
        "",
        "@code{.cpp}",
        "   f(x);",
        "@endcode",
    ]


def test_nested_lists_get_four_columns_and_output_a_title():
    text = "- a\n  - b\n    c\n\n1. d\n   - e\n\n```text output\n  - f\n```\n"
    wanted = '- a\n    - b\n        c\n\n1. d\n    - e\n\n```text title="Output"\n  - f\n```\n'
    assert markdown_of_site.converted(text) == wanted


def test_the_navigation_has_every_page_once():
    listed = list(pages_of(navigation.make(ROOT / "docs", {})))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(pages | {"decisions/index.md"})


def test_groups_and_folders_of_the_index_become_sections(tmp_path):
    (tmp_path / "why").mkdir()
    (tmp_path / "why/1.md").write_text("# First\n")
    (tmp_path / "index.md").write_text(
        "# All\n\n## Use: do it\n\n- Begin:\n  - [install](a.md)\n- [x.h](b.md)\n- [Why](why): all\n"
    )
    assert navigation.make(tmp_path, {"Use": {"More": ["c.md"]}}) == [
        {"Home": "index.md"},
        {
            "Use": [
                {"More": ["c.md"]},
                {"Begin": [{"Install": "a.md"}]},
                {"x.h": "b.md"},
                {"Why": ["why/index.md", {"First": "why/1.md"}]},
            ]
        },
    ]


@pytest.mark.parametrize(
    ("page", "link", "moved"),
    [
        ("docs/how_to/install.md", "../reference/torch.md#counts", "../reference/torch.md#counts"),
        ("docs/how_to/install.md", "../../README.md", "../project/README.md"),
        ("docs/how_to/install.md", "../../include/fccl/fccl.h", "../reference/c_functions.md"),
        ("docs/how_to/install.md", "../../src/base/transfer.h", "../project/src/base/transfer.h.md"),
        ("README.md", "docs/how_to/install.md", "../how_to/install.md"),
        ("README.md", "docs/images/one_host_times.png", "../images/one_host_times.png"),
        ("docs/index.md", "decisions", "decisions/index.md"),
        ("README.md", "https://example.org/README.md", "https://example.org/README.md"),
        ("README.md", "missing.md", "missing.md"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site(page, link, moved):
    assert places.with_links_of_site(f"see [it]({link}).", page) == f"see [it]({moved})."


def test_files_to_which_no_page_leads_are_not_in_the_site():
    outside = places.outside()
    assert "src/README.md" in outside
    assert "src/base/transfer.h" in outside
    assert not [path for path in outside if path.startswith("docs/") or path == "CMakeLists.txt"]
