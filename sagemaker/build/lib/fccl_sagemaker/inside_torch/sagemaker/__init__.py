"""SMP v2's module, torch.sagemaker, as fccl-sagemaker serves it."""

from fccl_sagemaker import modules
from fccl_sagemaker.session import init, is_initialized, state
from fccl_sagemaker.tensor_parallel import transform

__all__ = ["init", "is_initialized", "state", "transform"]

modules.install(__name__)
