"""Keeps pytest's process single-threaded, as the ranks are."""

import torch

torch.set_num_threads(1)
