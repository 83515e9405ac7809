"""Medians of measured rows, and how many times as long as FCCL the fastest of its peers takes."""

import statistics
from dataclasses import dataclass

from libraries import OWN

PLACEMENTS = ["out_of_place", "in_place"]


@dataclass(frozen=True)
class Row:
    """One measured size of one batch; times in microseconds."""

    inputs: str
    collective: str
    library: str
    batch: int
    size: int
    placement: str
    time: float
    p50: float
    p99: float
    queued: float
    wrong: float
    undisturbed: bool


@dataclass(frozen=True)
class Cell:
    """One cell of the table: all calls that one median is taken over."""

    inputs: str
    collective: str
    size: int
    placement: str


@dataclass(frozen=True)
class Best:
    """The fastest peer of a cell, and its time over FCCL's."""

    peer: str
    ratio: float


class Medians:
    """The medians of the rows that count, by cell and library."""

    def __init__(self, rows: list[Row]) -> None:
        times: dict[Cell, dict[str, list[float]]] = {}
        for row in rows:
            of_cell = times.setdefault(Cell(row.inputs, row.collective, row.size, row.placement), {})
            of_cell.setdefault(row.library, []).extend([row.time] if row.undisturbed else [])
        self._times = times

    def cells(self, inputs: str, collective: str, placement: str | None = None) -> list[Cell]:
        return sorted(
            (
                cell
                for cell in self._times
                if (cell.inputs, cell.collective) == (inputs, collective)
                and placement in (None, cell.placement)
            ),
            key=lambda cell: (cell.size, PLACEMENTS.index(cell.placement)),
        )

    def libraries(self, cell: Cell) -> list[str]:
        return list(self._times[cell])

    def count(self, cell: Cell, library: str) -> int:
        return len(self._times[cell].get(library, []))

    def median(self, cell: Cell, library: str) -> float | None:
        times = self._times[cell].get(library)
        return statistics.median(times) if times else None

    def ratio(self, cell: Cell, peer: str, own: str = "fccl") -> float | None:
        theirs, ours = self.median(cell, peer), self.median(cell, own)
        return theirs / ours if theirs is not None and ours else None

    def best(self, cell: Cell, own: str = "fccl") -> Best | None:
        """None where no peer or not `own` has a median. Nobody can use the limit, so it does not count."""
        found = [
            Best(peer, ratio)
            for peer in self._times[cell]
            if peer not in (*OWN, "limit") or (peer == "old" and own != "old")
            if (ratio := self.ratio(cell, peer, own)) is not None
        ]
        return min(found, key=lambda best: best.ratio, default=None)
