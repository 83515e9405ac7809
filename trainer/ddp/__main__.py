"""The entry: `torchrun --nproc-per-node 2 -m trainer.ddp DIR --arch resnet50`."""

import signal
import sys

from trainer.ddp.arguments import PROGRAM, SettingsError, parse
from trainer.fsdp.interrupt import die_with_the_launcher
from trainer.refusal import refuse

FAILED = 1


def main(words: list[str]) -> int:
    """The exit status of this rank."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    die_with_the_launcher()
    try:
        settings = parse(words)
        # Imported here because torch and torchvision take seconds, and a wrong argument should not.
        from torch.distributed import DistError

        from trainer.ddp.training import train

        try:
            train(settings)
        except DistError as error:
            print(f"{PROGRAM}: {error}", file=sys.stderr)
            return FAILED
        return 0
    except SettingsError as error:
        return refuse(PROGRAM, error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
