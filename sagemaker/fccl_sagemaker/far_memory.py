"""Memory away from the layers: mapped temporary files on the CPU, pinned memory for a GPU."""

from __future__ import annotations

import functools
import os
import tempfile
import weakref
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor

import torch

_free: dict[tuple[str, int], list[torch.Tensor]] = defaultdict(list)


class FarTensor:
    """A tensor's copy far away; the memory serves the next one when this one is dropped."""

    def __init__(self, tensor: torch.Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        key = (tensor.device.type, size_for(size))
        memory = _free[key].pop() if _free[key] else _allocate(*key)
        weakref.finalize(self, _free[key].append, memory)
        self._copy = memory[:size].view(tensor.dtype).view(tensor.shape)
        self._device = tensor.device

    def fetch(self) -> tuple[torch.Tensor, Future[torch.Tensor]]:
        """Begins to bring the tensor near; gives where it will lie, and what to wait for."""
        raise NotImplementedError


class MappedTensor(FarTensor):
    """In a temporary file that is mapped, so that the system may write it out when memory is short."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor)
        self._copy.copy_(tensor)

    def fetch(self) -> tuple[torch.Tensor, Future[torch.Tensor]]:
        near = torch.empty_like(self._copy)
        return near, _fetcher().submit(near.copy_, self._copy)


class PinnedTensor(FarTensor):
    """In pinned memory, copied on a stream of its own beside the computation."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor)
        stream = _stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self._copy.copy_(tensor, non_blocking=True)
        # The allocator must not give the memory away before the copy has read it.
        tensor.record_stream(stream)

    def fetch(self) -> tuple[torch.Tensor, Future[torch.Tensor]]:
        stream = _stream(self._device)
        near = torch.empty_like(self._copy, device=self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            near.copy_(self._copy, non_blocking=True)
        near.record_stream(stream)
        return near, _OnStream(near, stream.record_event())


class _OnStream(Future):
    """A copy that the caller's stream waits for, and its thread does not."""

    def __init__(self, near: torch.Tensor, done: torch.cuda.Event) -> None:
        super().__init__()
        self._near_tensor = near
        self._done = done

    def result(self, timeout: float | None = None) -> torch.Tensor:
        torch.cuda.current_stream(self._near_tensor.device).wait_event(self._done)
        return self._near_tensor


def send_away(tensor: torch.Tensor) -> FarTensor:
    """Copies a tensor to where it costs the layers' memory nothing."""
    return PinnedTensor(tensor) if tensor.device.type == "cuda" else MappedTensor(tensor)


def size_for(size: int) -> int:
    """The size of memory for so many bytes.

    Between two powers of two there are four, which batches of all lengths share.
    """
    step = 1 << max(0, size.bit_length() - 3)
    return -(-size // step) * step


def _allocate(device_type: str, size: int) -> torch.Tensor:
    if device_type == "cuda":
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)
    if size == 0:
        return torch.empty(0, dtype=torch.uint8)
    handle, name = tempfile.mkstemp(prefix="fccl-activations-")
    try:
        # A full disk is to be an error here, and not a SIGBUS when a page is written.
        os.posix_fallocate(handle, 0, size)
        return torch.from_file(name, shared=True, size=size, dtype=torch.uint8)
    except OSError as error:
        raise RuntimeError(
            f"activations of {size} bytes cannot be offloaded into a file of {tempfile.gettempdir()}: "
            f"{error.strerror}; "
            "let TMPDIR name a folder with room, or set sm_activation_offloading to false"
        ) from error
    finally:
        os.close(handle)
        os.unlink(name)


@functools.cache
def _fetcher() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="fccl-activations")


@functools.cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
