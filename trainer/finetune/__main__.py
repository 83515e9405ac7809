"""The entry: reads the command line, then trains on this rank."""

import sys

from trainer.finetune.command_line import describe, parse
from trainer.finetune.flags import PROGRAM, FlagError
from trainer.fsdp.interrupt import INTERRUPTED, Interrupt, die_with_the_launcher
from trainer.refusal import refuse


def main(words: list[str]) -> int:
    """The exit status of this rank."""
    if "--help" in words or "-h" in words:
        print(describe())
        return 0
    interrupt = Interrupt()
    die_with_the_launcher()
    try:
        settings = parse(words)
        # Imported here because torch and transformers take seconds, and a wrong flag should not.
        from trainer.finetune.training import train

        return 0 if train(settings, interrupt) else INTERRUPTED
    except FlagError as error:
        return refuse(PROGRAM, error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
