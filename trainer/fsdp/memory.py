"""The most memory that a rank has held."""

import resource

import torch


def peak_bytes(device: torch.device) -> int:
    """Bytes of this process since it began: resident ones on a processor, torch's own on a GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
