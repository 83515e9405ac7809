"""Doxygen's INPUT_FILTER: marks the comments of a header, which are plain, as Doxygen wants them."""

import re
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|(?:(?<=\n)|\A)[ \t]*//[^\n]*(?:\n[ \t]*//[^\n]*)*|//[^\n]*", re.DOTALL)
SECTION = re.compile(r"^\s*(?:/\*|//) ---- (?P<title>.+?) -+(?P<rest>.*)$", re.DOTALL)
_TERM = re.compile(r"^ {2,3}(\w+) {2,}(?=\S)")
_CODE = re.compile(r"^ {2,}\S")
# Doxygen takes these for commands, for HTML or for links.
_SPECIAL = re.compile(r"[\\@<>&#%]|::")


def lines_of(comment: str) -> list[str]:
    """The text of a comment, without its marks."""
    lines = comment.strip().removeprefix("/*").removesuffix("*/").splitlines()
    return [re.sub(r"^\s*(?://|\*(?!/))? ?", "", line, count=1).rstrip() for line in lines]


def as_doxygen(lines: list[str]) -> list[str]:
    """The same text in Doxygen's words: escaped, its terms as a list, its code as code."""
    found: list[str] = []
    in_code = in_list = False
    for line in lines:
        term = _TERM.match(line)
        is_code = bool(_CODE.match(line)) and not term and not in_list
        if is_code != in_code:
            found.append("@code{.cpp}" if is_code else "@endcode")
        in_code, in_list = is_code, bool(term) or (in_list and line.startswith(" "))
        if is_code:
            found.append(line)
        elif term:
            found.append(f" - <b>{term[1]}</b> – {escaped(line[term.end() :])}")
        else:
            found.append(f"   {escaped(line.strip())}" if in_list else escaped(line))
    return [*found, "@endcode"] if in_code else found


def escaped(text: str) -> str:
    """Text in which Doxygen finds nothing to obey."""
    return _SPECIAL.sub(lambda special: "\\" + special[0], text)


def filtered(text: str) -> str:
    """The header with the comments of its declarations marked; those of sections stay plain."""
    after_section = False

    def marked(found: re.Match) -> str:
        nonlocal after_section
        comment, follows_section = found[0], after_section
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        after_section = bool(SECTION.match(comment))
        # A section's introduction follows it without an empty line.
        if after_section or (follows_section and not text.endswith("\n\n", 0, found.start())):
            return comment
        if before.strip():
            return f"/**< {' '.join(as_doxygen(lines_of(comment)))} */"
        kind = "@file\n" if found.start() == 0 else ""
        indent = re.match(r"[ \t]*", comment)[0]
        return f"{indent}/** {kind}" + "\n".join(as_doxygen(lines_of(comment))) + " */"

    return COMMENT.sub(marked, text)


if __name__ == "__main__":
    sys.stdout.write(filtered(Path(sys.argv[1]).read_text()))
