"""trainer.ddp, under the path that AWS's manifests name: `torchrun examples/imagenet/main.py DIR`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from trainer.ddp.__main__ import main  # found by the line above

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
