"""Refuses a command line by which no rank could train, before any rank is started."""

import sys

from trainer.fsdp.arguments import PROGRAM, SettingsError, parse
from trainer.refusal import refuse


def main(words: list[str]) -> int:
    """0 for good words; else the status of a rank that refuses them, after the one line that says why."""
    try:
        parse(words)
    except SettingsError as error:
        return refuse(PROGRAM, error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
