"""One rank of the campaign of strangers: a victim, of whom is told where it listens, or an outsider."""

import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

LISTENING = "0A"
LOOK_INTERVAL = 0.02
NOBODY = 65534


def main() -> None:
    """Arguments: a folder that the hosts share, seconds, elements, the outsider's provider, roles.

    A letter per rank. v: victim; o: outsider; u: as another user; b: one as busy with itself."""
    folder, seconds, elements, provider, roles = Path(sys.argv[1]), *sys.argv[2:]
    rank = int(os.environ["RANK"])
    role = roles[rank]
    if role == "v":
        own = os.environ | {"RANK": str(roles[:rank].count("v")), "WORLD_SIZE": str(roles.count("v"))}
        victim = subprocess.Popen([folder / "victim", folder, seconds, elements], env=own)
        sys.exit(tell_places(folder / f"places.{rank}", victim))
    # Each attack on each place has an endpoint of its own.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if role == "u" else {}
    target = "busy" if role == "b" else folder
    sys.exit(subprocess.run([folder / "outsider", provider, seconds, target], **user).returncode)


def tell_places(file: Path, victim: subprocess.Popen) -> int:
    """Keeps the places in the file up to date while the victim runs; its exit status."""
    own = socket.gethostbyname(socket.gethostname())
    part = file.with_name(f"part.{file.name}")
    while victim.poll() is None:
        part.write_text("".join(f"{own} {port}\n" for port in ports_of(victim.pid)))
        part.rename(file)
        time.sleep(LOOK_INTERVAL)
    return victim.returncode


def ports_of(pid: int) -> list[int]:
    """The TCP ports on which a process of this host listens."""
    try:
        own = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return []  # it has ended, or closed what was just listed
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [each for each in lines if each[3] == LISTENING and f"socket:[{each[9]}]" in own]
    return sorted({int(each[1].rpartition(":")[2], 16) for each in mine})


if __name__ == "__main__":
    main()
