"""Registers the backend "smddp", which fccl serves as it serves "fccl"."""

from __future__ import annotations

NAME = "smddp"


def register() -> None:
    """Does nothing when the name is registered."""
    import torch.distributed as dist
    from fccl import _register

    _register.register()
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(
            NAME, _register._create, extended_api=True, devices=_register.served_devices()
        )
