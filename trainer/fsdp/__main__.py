"""The entry: reads the command line, then trains on this rank or prints what training would take."""

import os
import sys
import time

from trainer.fsdp.arguments import PROGRAM, Settings, SettingsError, parse
from trainer.fsdp.interrupt import INTERRUPTED, Interrupt, die_with_the_launcher

WRONG_SETTINGS = 2
# A launcher ends all ranks once one has ended, and the first rank may still be starting.
FIRST_RANK_STARTS_SECONDS = 5


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
        if not _is_first_rank():
            time.sleep(FIRST_RANK_STARTS_SECONDS)
        else:
            print(f"{PROGRAM}: {error}", file=sys.stderr, flush=True)
        return WRONG_SETTINGS


def _dry_run(settings: Settings) -> int:
    if _is_first_rank():
        from trainer.fsdp.dry_run import describe

        print(describe(settings))
    return 0


def _is_first_rank() -> bool:
    return os.environ.get("RANK", "0") == "0"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
