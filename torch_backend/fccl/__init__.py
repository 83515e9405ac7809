"""FCCL for PyTorch: the torch.distributed backend "fccl".

With the package installed, `torch.distributed.init_process_group("fccl")` needs no import of it.
"""

from fccl._arena import use_arena
from fccl._build import VERSION as __version__
from fccl._groups import ProcessGroup, is_active
from fccl._metrics import metrics, metrics_text
from fccl._register import counters, register_quietly, set_default

__all__ = [
    "ProcessGroup",
    "__version__",
    "counters",
    "is_active",
    "metrics",
    "metrics_text",
    "set_default",
    "use_arena",
    "version",
]


def version() -> str:
    """The version of the package and of the library inside it."""
    return __version__


register_quietly()
