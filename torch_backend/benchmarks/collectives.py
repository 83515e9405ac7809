"""Times collectives on fccl, Gloo and DeepSpeed, in turns: torchrun --nproc-per-node 2 collectives.py

fccl has private tensors of float32, as Gloo and DeepSpeed do, and tensors of its arena. In each turn every
contestant makes the same calls on inputs of the turn's own. A fresh input was written by its rank right
before the call, which is timed alone; a warm one was read by a call before, and four calls are timed
together. Writing and checking are not in the times, which are those of the slowest rank. DeepSpeed has
an AllReduce within one host, nothing else.
"""

import argparse
import functools
import importlib.util
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist

CONTESTANTS = ("fccl", "fccl, arena", "gloo", "deepspeed")
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")
INPUTS = ("warm", "fresh")
# Calls of a turn. Sums of sums stay whole numbers of float32 on up to 17 ranks.
WARM_CALLS = 4
MODULUS = 11
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text: str) -> int:
    """A number of bytes as 64M or 4096."""
    unit = UNITS.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def numbers(count: int, rank: int, turn: int) -> torch.Tensor:
    """A rank's input, of whole numbers above zero, so that no sum equals what one rank brought."""
    index = torch.arange(count, dtype=torch.int32).mul_(7).add_(rank * 13 + turn * 5)
    return index.remainder_(MODULUS).add_(1).float()


class DeepSpeed:
    """DeepSpeed's AllReduce by shared memory; `missing` says why it cannot be had."""

    def __init__(self) -> None:
        self.missing = self._why_not()
        if self.missing:
            return
        from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder

        # It takes all ranks for those of one host where this says so, and uses no shared memory otherwise.
        os.environ["LOCAL_SIZE"] = os.environ["WORLD_SIZE"]
        operation = ShareMemCommBuilder().load(verbose=False)
        operation.initialize(dist.get_world_size(), dist.get_rank())

    @staticmethod
    def _why_not() -> str:
        if importlib.util.find_spec("deepspeed") is None:
            return "is not installed"
        if os.environ["LOCAL_WORLD_SIZE"] != os.environ["WORLD_SIZE"]:
            return "is for one host"
        return ""

    @staticmethod
    def all_reduce(tensor: torch.Tensor) -> None:
        torch.ops.deepspeed.inference_all_reduce_(tensor)

    def remove_shared_memory(self) -> None:
        """This rank's, which it would leave behind."""
        if not self.missing:
            place = f"{os.environ['MASTER_ADDR']}_{os.environ['MASTER_PORT']}_{dist.get_rank()}"
            Path(f"/dev/shm/deepspeed_allreduce_buffer_{os.getuid()}_{place}").unlink(missing_ok=True)


@dataclass
class Trial:
    """One contestant's collective of one size: its tensors, and how it is called."""

    call: Callable[[], object]
    given: torch.Tensor
    taken: torch.Tensor  # the same for all_reduce

    def prepare(self, source: torch.Tensor) -> None:
        """The output has nothing that a call may bring; the input is written last."""
        self.taken.fill_(float("nan"))
        self.given.copy_(source)

    def wrong(self, expected: torch.Tensor) -> int:
        return int((self.taken != expected).sum())


@dataclass
class Row:
    """Seconds of each contestant, turn by turn, for one collective, size and kind of input."""

    seconds: dict[str, torch.Tensor]
    wrong: dict[str, int]


class Comparison:
    """The contestants, each with its group."""

    def __init__(self, deepspeed: DeepSpeed) -> None:
        self._groups = {"fccl": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
        self._deepspeed = deepspeed
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        self._turn = 0

    def measure(self, collective: str, size: int, inputs: str, turns: int) -> Row:
        """`size` is that of the larger tensor. Two turns more come first, which do not count."""
        trials = self._trials(collective, size)
        seconds = {name: torch.zeros(turns) for name in trials}
        wrong = dict.fromkeys(trials, 0)
        for turn in range(-2, turns):
            self._turn += 1
            each = [numbers(trials["fccl"].given.numel(), rank, self._turn) for rank in range(self._ranks)]
            calls = 1 + WARM_CALLS if inputs == "warm" else 1
            expected = self._expected(collective, each, calls)
            # Another one is the first in each turn.
            first = self._turn % len(trials)
            for name, trial in [*list(trials.items())[first:], *list(trials.items())[:first]]:
                taken = self._time(trial, each[self._rank], inputs)
                wrong[name] += trial.wrong(expected)
                if turn >= 0:
                    seconds[name][turn] = taken
        for name in trials:
            dist.all_reduce(seconds[name], dist.ReduceOp.MAX)
            every = torch.tensor([wrong[name]])
            dist.all_reduce(every)
            wrong[name] = int(every)
        return Row(seconds, wrong)

    def _trials(self, collective: str, size: int) -> dict[str, Trial]:
        count = size // 4 // self._ranks
        trials = {}
        for name in CONTESTANTS:
            if name == "deepspeed" and (self._deepspeed.missing or collective != "all_reduce"):
                continue
            group = self._groups.get(name.partition(",")[0])
            new = self._arena_tensor if "arena" in name else torch.empty
            whole, part = new(count * self._ranks), new(count)
            if collective == "all_gather":
                trials[name] = Trial(
                    functools.partial(dist.all_gather_into_tensor, whole, part, group), part, whole
                )
            elif collective == "reduce_scatter":
                trials[name] = Trial(
                    functools.partial(dist.reduce_scatter_tensor, part, whole, group=group), whole, part
                )
            elif name == "deepspeed":
                trials[name] = Trial(functools.partial(self._deepspeed.all_reduce, whole), whole, whole)
            else:
                trials[name] = Trial(functools.partial(dist.all_reduce, whole, group=group), whole, whole)
        return trials

    def _arena_tensor(self, count: int) -> torch.Tensor:
        backend = self._groups["fccl"]._get_backend(torch.device("cpu"))
        return backend.allocate_tensor(count, dtype=torch.float32, device=torch.device("cpu"))

    def _expected(self, collective: str, each: list[torch.Tensor], calls: int) -> torch.Tensor:
        if collective == "all_gather":
            return torch.cat(each)
        total = torch.stack(each).sum(0)
        if collective == "reduce_scatter":
            return total.chunk(self._ranks)[self._rank]
        return total * self._ranks ** (calls - 1)

    @staticmethod
    def _time(trial: Trial, source: torch.Tensor, inputs: str) -> float:
        """Seconds of one call."""
        trial.prepare(source)
        calls = 1
        if inputs == "warm":
            trial.call()
            calls = WARM_CALLS
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            trial.call()
        return (time.perf_counter() - begin) / calls


def print_head(turns: int, deepspeed: DeepSpeed) -> None:
    ranks = dist.get_world_size()
    print(
        f"{ranks} ranks, microseconds, medians of {turns} turns; a ratio is the median of those of the turns"
    )
    if deepspeed.missing:
        print(f"deepspeed {deepspeed.missing}: its column is empty")
    names = "".join(f"{name:>13}" for name in CONTESTANTS)
    ratios = "".join(f"{name + ' / fccl':>19}" for name in CONTESTANTS[1:])
    print(f"{'':15}{'bytes':>9}{'input':>7}{names}{ratios}{'wrong':>7}", flush=True)


def print_row(title: str, row: Row) -> None:
    times = ratios = ""
    for name in CONTESTANTS:
        if name not in row.seconds:
            times += f"{'-':>13}"
            ratios += f"{'-':>19}"
            continue
        times += f"{median(row.seconds[name].tolist()) * 1e6:13.1f}"
        if name != "fccl":
            ratios += f"{median((row.seconds[name] / row.seconds['fccl']).tolist()):19.2f}"
    print(f"{title}{times}{ratios}{sum(row.wrong.values()):7}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--least", type=bytes_of, default=1 << 10, help="bytes of the larger tensor (1K)")
    parser.add_argument("--most", type=bytes_of, default=64 << 20, help="up to so many (64M)")
    parser.add_argument("--factor", type=int, default=4, help="from a size to the next (4)")
    parser.add_argument("--turns", type=int, default=15, help="that count (15)")
    parser.add_argument("--collectives", nargs="+", choices=COLLECTIVES, default=COLLECTIVES)
    parser.add_argument("--inputs", nargs="+", choices=INPUTS, default=INPUTS)
    given = parser.parse_args()
    if given.factor < 2:
        parser.error(f"--factor is 2 or more, but got {given.factor}")
    warnings.filterwarnings("ignore", category=FutureWarning)
    torch.set_num_threads(1)
    dist.init_process_group("fccl")
    deepspeed = DeepSpeed()
    comparison = Comparison(deepspeed)
    wrong = 0
    if dist.get_rank() == 0:
        print_head(given.turns, deepspeed)
    for collective in given.collectives:
        size = given.least
        while size <= given.most:
            for inputs in given.inputs:
                row = comparison.measure(collective, size, inputs, given.turns)
                wrong += sum(row.wrong.values())
                if dist.get_rank() == 0:
                    print_row(f"{collective:15}{size:9}{inputs:>7}", row)
            size *= given.factor
    deepspeed.remove_shared_memory()
    dist.destroy_process_group()
    if wrong:
        raise SystemExit(f"{wrong} elements were wrong")


if __name__ == "__main__":
    main()
