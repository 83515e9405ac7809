"""Layers and hooks that scripts for SMP v2 import: what they name is served, or refused when it is made."""

from __future__ import annotations

from typing import Any

from torch import nn


class _Refused:
    """A name that scripts import, and that is refused when it is made."""

    reason = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError(
            f"torch.sagemaker's {type(self).__name__} is not served by fccl-sagemaker: {self.reason}"
        )


class MoEConfig(_Refused):
    """SMP's configuration of experts, sinkhorn's load balancing among it."""

    reason = "init() does not split experts; train with trainer/fsdp and its --expert-parallel"


class TransformerLayer(nn.Module, _Refused):
    """SMP's own layer: a wrapping policy may name it, and no model of Transformers has one."""

    reason = "take a layer of Transformers, which transform() splits by the model's plan"

    def __init__(self, *inputs: Any, **named: Any) -> None:
        _Refused.__init__(self, *inputs, **named)


class TETransformerLayer(TransformerLayer):
    """The same by Transformer Engine, which serves FP8."""

    reason = "it needs Transformer Engine and a GPU that computes in FP8"


def register_tp_processing_pre_comm_hook(model: nn.Module, *_: Any, **__: Any) -> None:
    """Does nothing: the plans of Transformers leave every rank whole gradients before FSDP's calls."""
