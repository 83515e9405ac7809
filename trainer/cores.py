"""How many cores a rank computes on beside the other ranks of its host."""

import os

import torch


def use_fair_share_of_cores(ranks_of_the_host: int) -> None:
    """Gives torch as many threads as there are cores for each rank."""
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // ranks_of_the_host))
