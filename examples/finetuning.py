"""Fine-tunes a Llama by llama-recipes' command line, from any folder: torchrun REPOSITORY/examples/finetuning.py --FLAG ..."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trainer.finetune.__main__ import main  # noqa: E402  (found by the line above)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
