"""The trainer of FSDP2 with kernels of torch that give the same bits in each run."""

import os
import runpy

import torch

# cuBLAS reads it when it begins.
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
torch.use_deterministic_algorithms(True, warn_only=True)
runpy.run_module("trainer.fsdp", run_name="__main__", alter_sys=True)
