"""Runs a program on ranks that are forked from a process with torch: RANKS PROGRAM [MODULE...].

The import of torch takes seconds. The modules are loaded before the fork, too. The ranks find each other
as they do under torchrun, and end as any interpreter does.
"""

import importlib
import os
import runpy
import socket
import sys

import torch


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def main() -> None:
    size, program, modules = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    torch.set_num_threads(1)
    for module in modules:
        importlib.import_module(module)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    os.environ.update(place, LOCAL_WORLD_SIZE=str(size))
    ranks = []
    for rank in range(size):
        if child := os.fork():
            ranks.append(child)
            continue
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        sys.argv = [program]
        runpy.run_path(program, run_name="__main__")
        return
    statuses = [os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks]
    if any(statuses):
        sys.exit(f"exit statuses by rank: {statuses}")


if __name__ == "__main__":
    main()
