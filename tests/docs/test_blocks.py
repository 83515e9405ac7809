"""Runs every block of every page: a page whose command or program no longer works is a failing test."""

import re

import pytest
from pages import DATA, PAGES, PROGRAMS, Block, blocks_of, commands_of, program_of
from substitutes import SUBSTITUTES

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
INSTEAD = {each.command: each.instead for each in SUBSTITUTES}
# Parts of a message that differ from one run to the next.
FLEETING = [
    (r"\(pid \d+ on [^)]+\)", "(pid N on HOST)"),
    (r"waited [\d.]+ s", "waited N s"),
    (r"while rank \d+ waited", "while rank N waited"),
]


def blocks(*languages):
    chosen = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", chosen, ids=[block.place for block in chosen])


@blocks("sh")
def test_the_commands_of_a_page_succeed(block, run, checkout):
    lines = [INSTEAD.get(command, command) for command in commands_of(block)]
    # It would install, build or test inside a test.
    started = [line for line in lines if re.match(r"\./dev (?!help\b)", line)]
    assert not started, f"{block.place}: {started} is too much for a test: give it a line in substitutes.py"
    outcome = run("trap 'echo \"failed: $BASH_COMMAND\"' ERR\n" + "\n".join(lines), checkout)
    assert outcome.status == 0, f"{block.place} ended with status {outcome.status}:\n{outcome.said}"
    assert_shown(block, outcome.said)


@blocks(*sorted(PROGRAMS))
def test_a_program_of_a_page_runs_as_its_first_line_says(block, run, programs_of):
    program = program_of(block)
    outcome = run(INSTEAD.get(program.command, program.command), programs_of(block.page))
    wanted = "a failure" if program.fails else "success"
    assert (outcome.status != 0) == program.fails, (
        f"{block.place}: `{program.command}` ended with status {outcome.status}, "
        f"but the page says {wanted}:\n{outcome.said}"
    )
    assert_shown(block, outcome.said)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.place for block in BLOCKS])
def test_every_block_names_a_language_that_is_run_or_is_data(block):
    known = {"sh"} | PROGRAMS | DATA
    assert block.language in known, (
        f"{block.place}: the fence says '{block.language}'; say one of {', '.join(sorted(known))}"
    )


@pytest.mark.parametrize("substitute", SUBSTITUTES, ids=[each.command for each in SUBSTITUTES])
def test_every_substitute_stands_for_a_command_of_a_page(substitute):
    written = {command for block in BLOCKS if block.language == "sh" for command in commands_of(block)}
    written |= {program_of(block).command for block in BLOCKS if block.language in PROGRAMS}
    assert substitute.command in written, "no page has this command any more: remove it from substitutes.py"


def assert_shown(block: Block, said: str):
    """Every line of output on the page must have been said; an indented line continues the one before it."""
    if block.output is None:
        return
    spoken = plain(said)
    for line in re.sub(r"\n +", " ", block.output).splitlines():
        assert plain(line) in spoken, f"{block.place}: the page shows\n  {line}\nbut what was said is\n{said}"


def plain(text: str) -> str:
    for pattern, word in FLEETING:
        text = re.sub(pattern, word, text)
    return " ".join(text.split())
