"""Names: no empty words in them, one reader of the environment, a sentence at the head of every file."""

import re
from collections.abc import Iterator

from tree import Fault, Tree, bare_cpp, line_of

EMPTY_WORDS = {"util", "utils", "common", "helper", "helpers", "impl", "manager", "misc", "v2"}
SETTINGS = "src/settings/settings.cpp"
# Each reads the environment for its own program: the library, and the perf binaries beside it.
ENVIRONMENT_READERS = (SETTINGS, "perf_tests/environment.cpp")
READS_ENVIRONMENT = re.compile(r"\b(?:secure_)?getenv\s*\(|\benviron\b")
PUT_OFF = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
CPP_TYPE = re.compile(
    r"\b(?:class|struct|union|concept|namespace|enum(?:\s+(?:class|struct))?|using)\s+(?:FCCL_API\s+)?(\w+)"
)
PYTHON_TYPE = re.compile(r"^\s*class\s+(\w+)", re.MULTILINE)
# Files that have no comments, or say what they are in a heading.
WITHOUT_SENTENCE = (".md", ".json", ".png", ".svg", ".csv", ".xml", ".txt", "LICENSE")
COMMENT_MARKS = ("//", "/*", "#", '"""', "<!--", ";")


def faults(tree: Tree) -> Iterator[Fault]:
    for path in tree.files:
        for part in path.split("/"):
            if empty := EMPTY_WORDS & words_of(part):
                yield Fault(
                    path,
                    1,
                    f"the name '{part}' has the empty word '{empty.pop()}'; say what is inside (names)",
                )
    for path in tree.cpp + tree.python:
        yield from faults_in_code(tree, path)
    for path in tree.files:
        if (
            not path.endswith(WITHOUT_SENTENCE)
            and tree.text(path)
            and not begins_with_sentence(tree.text(path))
        ):
            yield Fault(
                path, 1, "begins with no comment that says in one sentence what the file is for (names)"
            )


def faults_in_code(tree: Tree, path: str) -> Iterator[Fault]:
    text = tree.text(path)
    is_cpp = path in tree.cpp
    code = bare_cpp(text) if is_cpp else text
    for found in (CPP_TYPE if is_cpp else PYTHON_TYPE).finditer(code):
        if empty := EMPTY_WORDS & words_of(found[1]):
            yield Fault(
                path,
                line_of(code, found.start(1)),
                f"the name {found[1]} has the empty word '{empty.pop()}' (names)",
            )
    if is_cpp and path not in ENVIRONMENT_READERS and not path.startswith("tests/"):
        for found in READS_ENVIRONMENT.finditer(code):
            yield Fault(path, line_of(code, found.start()), f"only {SETTINGS} reads the environment (names)")
    if not path.startswith(".ci/"):
        for found in PUT_OFF.finditer(text):
            yield Fault(
                path,
                line_of(text, found.start()),
                f"{found[1]}: do it now, or say in the docs what is missing (names)",
            )


def words_of(name: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return set(re.split(r"[^a-z0-9]+", spaced.lower()))


def begins_with_sentence(text: str) -> bool:
    lines = text.splitlines()
    if lines and lines[0].startswith(("#!", "<?")):
        lines = lines[1:]
    first = lines[0].strip() if lines else ""
    mark = next((mark for mark in COMMENT_MARKS if first.startswith(mark)), None)
    return mark is not None and len(first.removeprefix(mark).split()) >= 3
