"""torchrun that ends quietly: `python -m trainer.launch --standalone --nproc-per-node 2 -m trainer.fsdp ...`.

Takes torchrun's arguments. A run that was interrupted, or that refused its settings, ends with that
exit status and without the launcher's stack trace; a rank that failed is named. The variables PET_* stand
for arguments as they do under torchrun, and LOGLEVEL brings the launcher's own log back.
"""

import logging
import os
import sys

from trainer.refusal import WRONG_SETTINGS

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_kept: list[BaseException] = []
"""How the run ended, with torch's frames: the thread that keeps its rendezvous alive may hold that last
otherwise, and then ends itself with a stack trace."""


def launch(words: list[str]) -> int:
    """The exit status of the rank that failed first, or of a shell command that the signal ended."""
    level = os.environ.get("LOGLEVEL")
    if level is None:
        logging.disable(logging.ERROR)
    elif level.upper() not in LEVELS:
        print(f"LOGLEVEL={level}: choose one of {', '.join(LEVELS)}, or unset it", file=sys.stderr)
        return WRONG_SETTINGS
    else:
        os.environ["LOGLEVEL"] = level.upper()
    # Imported here because torch reads LOGLEVEL when it is imported.
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousError
    from torch.distributed.run import main, parse_args

    # With torch's shared store a host that joins looks for an address that nobody publishes again.
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    try:
        main(words)
    except SignalException as interruption:
        _kept.append(interruption)
        return 128 + interruption.sigval
    except ChildFailedError as error:
        _kept.append(error)
        rank, failure = error.get_first_failure()
        if failure.exitcode != WRONG_SETTINGS:
            print(f"rank {rank} failed first, with status {failure.exitcode}", file=sys.stderr)
        return failure.exitcode if failure.exitcode > 0 else 128 - failure.exitcode
    except RendezvousClosedError:
        print(_closed(parse_args(words).rdzv_id), file=sys.stderr)
        return 1
    except RendezvousError as error:
        print(f"trainer.launch: {error}", file=sys.stderr)
        return 1
    return 0


def _closed(run_id: str) -> str:
    return (
        f"trainer.launch: the rendezvous of the job with the id '{run_id}' is closed, because a job with "
        "this id has ended: start this one on every host with an id of its own, --rdzv-id (rdzvId)"
    )


if __name__ == "__main__":
    sys.exit(launch(sys.argv[1:]))
