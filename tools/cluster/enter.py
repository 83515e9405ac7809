#!/usr/bin/env python3
"""Stands in for ssh between the hosts of a cluster: enter.py [OPTION...] HOST WORD..."""

import sys

import control

# Options of ssh that mpirun gives and that take a value.
_WITH_VALUE = {"-p", "-l", "-o", "-i", "-F"}


def main(words: list[str]) -> int:
    """The exit status of the command, or as ssh's 255."""
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in _WITH_VALUE else words[1:]
    if len(words) < 2:
        print("enter: say a host and a command", file=sys.stderr)
        return 255
    # As ssh does, whose callers quote for the shell.
    command = ["bash", "-c", " ".join(words[1:])]
    try:
        return control.ask({"do": "run", "host": words[0], "command": command}, (0, 1, 2))["status"]
    except (OSError, ValueError) as error:
        print(f"enter: {words[0]} cannot be entered: {error}", file=sys.stderr)
        return 255


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
