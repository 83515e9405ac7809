"""Fine-tunes a Llama by llama-recipes' command line; torchrun may start it from any folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trainer.finetune.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
