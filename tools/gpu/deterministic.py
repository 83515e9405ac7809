"""The trainer of FSDP2 with kernels of torch that give the same bits in each run."""

import runpy

import torch

torch.use_deterministic_algorithms(True, warn_only=True)
runpy.run_module("trainer.fsdp", run_name="__main__", alter_sys=True)
