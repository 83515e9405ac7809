"""Writes a run's metrics where TensorBoard reads them."""

from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

FOLDER = "tensorboard"


class Events:
    """The event file of one attempt of a run; rank 0's main thread uses it."""

    def __init__(self, folder: Path, first_step: int) -> None:
        # TensorBoard hides what earlier attempts wrote of the steps that are done again.
        purge = first_step + 1 if first_step else None
        self._writer = SummaryWriter(str(folder / FOLDER), purge_step=purge)

    def add(self, metrics: dict[str, Any]) -> None:
        """Takes a line of metrics; each number of it is a curve over the steps."""
        for name, value in metrics.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, metrics["step"])

    def close(self) -> None:
        """Writes what is not in the file yet."""
        self._writer.close()
