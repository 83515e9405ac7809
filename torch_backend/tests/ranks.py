"""Runs a function as the ranks of a process group, each a process; any rank's failure is the caller's."""

import functools
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

_SERVER = multiprocessing.get_context("forkserver")
# The server imports what the tests use once, so that a rank starts at once. Every rank loads pytest.
# Optimizers, DDP and FSDP2 load torch._dynamo, which takes a second.
_SERVER.set_forkserver_preload(
    [
        "fccl",
        "numpy.random",
        "pytest",
        "torch._dynamo",
        "torch._inductor",
        "torch.distributed.checkpoint.state_dict",
        "torch.distributed.fsdp",
        "torch.testing",
    ]
)


def run_ranks(
    size: int,
    function: Callable,
    *arguments,
    timeout: float = 60,
    group_timeout: float = 30,
    prepare: Callable[[int], dict] | None = None,
) -> None:
    """Calls function(*arguments) on `size` ranks inside a default group of the backend "fccl".

    The ranks are on as many hosts as the variable FCCL_TEST_HOSTS says, in order; one, if it is not set.
    The value that `prepare` gives for a rank tells how its group is made, beside or instead of the usual.
    """
    __tracebackhide__ = True  # pytest shows the ranks' failures instead
    run = functools.partial(function, *arguments)
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            _SERVER.Process(
                target=_rank,
                args=((rank, size, hosts()), folder, group_timeout, prepare, run),
                daemon=True,
            )
            for rank in range(size)
        ]
        for process in processes:
            process.start()
        deadline = time.monotonic() + timeout
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
        failures = [_failure(rank, process, folder) for rank, process in enumerate(processes)]
        assert not any(failures), "\n".join(filter(None, failures))


def _failure(rank: int, process: multiprocessing.Process, folder: str) -> str | None:
    """The failure of a rank, or None; kills the rank if it still runs."""
    stuck = process.is_alive()
    if stuck:
        process.kill()
        process.join()
    if process.exitcode == 0:
        return None
    report = Path(folder, f"failure-{rank}")
    said = report.read_text() if report.exists() else "it left no traceback"
    return (
        f"rank {rank} {'did not end in time' if stuck else f'ended with status {process.exitcode}'}: {said}"
    )


def _rank(
    place: tuple[int, int, int],
    folder: str,
    group_timeout: float,
    prepare: Callable[[int], dict] | None,
    run: Callable[[], None],
) -> None:
    rank, size, wanted_hosts = place
    try:
        # The server's environment is that of its own start.
        os.environ["FCCL_TEST_HOSTS"] = str(wanted_hosts)
        if wanted_hosts > 1:
            os.environ["FCCL_HOST_ID"] = str(host_of(rank, size))
        torch.set_num_threads(1)
        wanted = prepare(rank) if prepare else {}
        if "gloo" not in wanted.get("backend", ""):
            forbid_gloo()
        usual = {"backend": "fccl", "timeout": timedelta(seconds=group_timeout)}
        dist.init_process_group(
            init_method=f"file://{folder}/store", rank=rank, world_size=size, **{**usual, **wanted}
        )
        run()
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        Path(folder, f"failure-{rank}").write_text(traceback.format_exc())
        raise


def hosts() -> int:
    """The hosts that the tests are to run on."""
    return int(os.environ.get("FCCL_TEST_HOSTS", "1"))


def host_of(rank: int, size: int) -> int:
    """The host of a rank among `size`: as many on each as can be, in order."""
    return rank * hosts() // size


def forbid_gloo() -> None:
    """Makes every attempt to use Gloo in this process raise, so that what passes has passed through fccl."""

    class ForbiddenGloo:
        def __init__(self, *_arguments, **_options):
            raise AssertionError("Gloo was used")

    dist.distributed_c10d.ProcessGroupGloo = ForbiddenGloo
    dist.Backend.register_backend("gloo", ForbiddenGloo, extended_api=True, devices=["cpu"])


def numbers(rank: int, count: int, dtype: torch.dtype, iteration: int = 0) -> torch.Tensor:
    """This rank's input: small whole numbers, so that sums of them are exact in every type."""
    values = (torch.arange(count) * 7 + rank * 13 + iteration * 5) % 23
    if dtype.is_floating_point or dtype.is_complex or dtype.is_signed:
        values -= 11
    return (values % 2).to(dtype) if dtype == torch.bool else values.to(dtype)


def poisoned(count: int, dtype: torch.dtype) -> torch.Tensor:
    """An output whose every byte is one that no input has."""
    tensor = torch.empty(count, dtype=dtype)
    tensor.view(torch.uint8).fill_(1 if dtype == torch.bool else 0x55)
    return tensor


def assert_same(actual: torch.Tensor, expected: torch.Tensor, what: object = "") -> None:
    """Bitwise, so that it holds for every type."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, (
        f"{what}: {actual} is not like {expected}"
    )
    # Not contiguous(), which may leave a stride behind a dimension of one element.
    bits = [
        tensor.clone(memory_format=torch.contiguous_format).view(torch.uint8) for tensor in (actual, expected)
    ]
    assert torch.equal(*bits), f"{what}: got {actual}, expected {expected}"
