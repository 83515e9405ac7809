"""The trainer in a process in which Gloo raises: `torchrun ... -m trainer.fsdp.tests.without_gloo`."""

import sys

from trainer.fsdp.__main__ import main
from trainer.fsdp.tests.runs import forbid_gloo

if __name__ == "__main__":
    forbid_gloo()
    sys.exit(main(sys.argv[1:]))
