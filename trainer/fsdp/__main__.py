"""The entry: reads the command line, then trains on this rank or prints what training would take."""

import sys

from trainer.fsdp.arguments import PROGRAM, Settings, SettingsError, parse
from trainer.fsdp.interrupt import INTERRUPTED, Interrupt, die_with_the_launcher
from trainer.refusal import is_first_rank, refuse


def main(words: list[str]) -> int:
    """The exit status of this rank."""
    interrupt = Interrupt()
    die_with_the_launcher()
    try:
        settings = parse(words)
        if settings.dry_run:
            return _dry_run(settings)
        # Imported here because torch and transformers take seconds, and a wrong argument should not.
        from trainer.fsdp.training import train

        return 0 if train(settings, interrupt) else INTERRUPTED
    except SettingsError as error:
        return refuse(PROGRAM, error)


def _dry_run(settings: Settings) -> int:
    if is_first_rank():
        from trainer.fsdp.dry_run import describe

        print(describe(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
