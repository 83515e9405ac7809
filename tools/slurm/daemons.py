"""Runs the daemons of one host of a Slurm, and on the first host a command: daemons.py RANKS [COMMAND...]."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import configuration

KEY = "FCCL_SLURM_KEY"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo")
START_LIMIT = 30.0
_PAUSE = 0.05
_ENTER = str(Path(__file__).resolve().parents[1] / "cluster" / "enter.py")


class Daemons:
    """The daemons of this host, each in a session of its own with a log in the host's memory."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._running: dict[str, subprocess.Popen] = {}

    def start(self, *words: str) -> None:
        """Starts one."""
        with log_of(words[0]).open("w") as log:
            self._running[words[0]] = subprocess.Popen(
                words, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def await_until(self, holds: Callable[[], bool], what: str) -> None:
        """Returns when it holds; OSError if a daemon ends before, or if that takes too long."""
        deadline = time.monotonic() + START_LIMIT
        while not holds():
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise OSError(ended(name, process.returncode))
            if time.monotonic() > deadline:
                raise OSError(f"{what} for {START_LIMIT:g} s")
            time.sleep(_PAUSE)

    def outlive(self) -> str:
        """Waits until one of them ends; says which."""
        process, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        return next(ended(name, code) for name, each in self._running.items() if each.pid == process)


def log_of(program: str) -> Path:
    """The file that a daemon of this host writes."""
    return configuration.FOLDER / f"{program}.log"


def ended(program: str, status: int) -> str:
    """Says that a daemon ended, and what it wrote last."""
    return (
        f"{program} ended with status {status}; its log ends so:\n{last_lines(log_of(program).read_text())}"
    )


def last_lines(text: str) -> str:
    """The end of a log, indented."""
    return "\n".join(f"  {line}" for line in text.splitlines()[-5:])


def start_munge(daemons: Daemons, key: str) -> None:
    """Starts munged, by which the daemons of all hosts and their users know each other."""
    files = {name: configuration.FOLDER / f"munge.{name}" for name in ("key", "pid", "seed")}
    files["key"].touch(0o400)
    files["key"].write_text(key)
    options = [f"--{name}-file={path}" for name, path in files.items()]
    log = f"--log-file={configuration.FOLDER / 'munge.log'}"
    daemons.start("munged", "--foreground", f"--socket={configuration.SOCKET}", *options, log)
    daemons.await_until(configuration.SOCKET.exists, "munged has made no socket")


def are_idle(count: int) -> bool:
    """True if Slurm has so many nodes, all idle."""
    said = subprocess.run(["sinfo", "-h", "-o", "%D %T"], capture_output=True, text=True)
    return said.stdout.split() == [str(count), "idle"]


def logs_of(hosts: int) -> str:
    """The ends of the daemons' logs on all hosts."""
    logs = []
    for host in range(hosts):
        reading = [sys.executable, _ENTER, f"node{host}", f"tail -n 3 {configuration.FOLDER}/*.log"]
        logs.append(f"node{host}:\n{subprocess.run(reading, capture_output=True, text=True).stdout}")
    return "\n".join(logs)


def run_command(command: list[str]) -> int:
    """The status of the command, which gets the signals that the cluster sends to its group."""
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        raise OSError(f"cannot start {command[0]}: {error.strerror}") from None
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    status = process.wait()
    return status if status >= 0 else 128 - status


def lead(daemons: Daemons, hosts: int, command: list[str]) -> int:
    """Waits for all nodes, then runs the command."""
    try:
        daemons.await_until(lambda: are_idle(hosts), f"the {hosts} nodes of Slurm have not been idle")
    except OSError as error:
        raise OSError(f"{error}. The logs of the daemons end so:\n{logs_of(hosts)}") from None
    return run_command(command)


def main(words: list[str]) -> int:
    """The exit status of the program."""
    key = os.environ.pop(KEY)
    os.environ["SLURM_CONF"] = str(configuration.CONFIGURATION)
    processors, command = list(map(int, words[0].split(","))), words[1:]
    try:
        configuration.write(processors)
        daemons = Daemons(dict(os.environ))
        start_munge(daemons, key)
        if command:
            daemons.start("slurmctld", "-D")
        daemons.start("slurmd", "-D")
        if command:
            return lead(daemons, len(processors), command)
        raise OSError(daemons.outlive())
    except OSError as error:
        print(f"slurm: {socket.gethostname()}: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
