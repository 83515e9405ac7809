"""trainer.ddp, after a note of when it began: `python -m trainer.ddp.tests.noted FILE ARGUMENT...`."""

import sys
import time

BEGAN = time.time()

from trainer.ddp.__main__ import main  # noqa: E402  # its import is part of the time

if __name__ == "__main__":
    with open(sys.argv[1], "a") as file:
        file.write(f"{BEGAN}\n")
    sys.exit(main(sys.argv[2:]))
