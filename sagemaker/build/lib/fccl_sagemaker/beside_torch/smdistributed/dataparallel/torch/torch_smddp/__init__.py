"""SMDDP's module, whose import makes the backend "smddp" known to torch.distributed."""

from fccl_sagemaker.smddp import register

register()
