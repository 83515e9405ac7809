"""Plans which processes start where: one per rank, torchrun once per host, mpirun on the first host."""

import os
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from shape import PORT, Shape, address, host_name, interface

CONTROL = "FCCL_CLUSTER_CONTROL"
_ENTER = str(Path(__file__).with_name("enter.py"))
# Given by the cluster, so that a command which gives them too means something else than it would get.
_TORCHRUN_OPTIONS = ("nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port", "standalone")


@dataclass(frozen=True)
class Start:
    """One command to start: its host, the label before its lines, and what its environment adds.

    One that is not awaited has no label and ends with the cluster.
    """

    host: int
    label: str
    command: list[str]
    environment: dict[str, str]
    is_awaited: bool = True


def plan(shape: Shape, command: list[str]) -> list[Start]:
    """Turns a command of the user into the processes to start; ValueError for one that makes no sense."""
    program = Path(command[0]).name
    if program == "torchrun":
        return [_torchrun(shape, host, command) for host in shape.hosts]
    if program.startswith(("mpirun", "mpiexec")):
        return [Start(0, "mpirun", command, _mpi(shape))]
    return _ranks(shape, command)


def _ranks(shape: Shape, command: list[str]) -> list[Start]:
    starts = []
    for host in shape.hosts:
        for local in range(shape.ranks[host]):
            rank = len(starts)
            variables = {
                "RANK": rank,
                "WORLD_SIZE": shape.world,
                "LOCAL_RANK": local,
                "LOCAL_WORLD_SIZE": shape.ranks[host],
                "GROUP_RANK": host,
                "MASTER_ADDR": address(0, 0),
                "MASTER_PORT": PORT,
            }
            environment = {name: str(value) for name, value in variables.items()}
            starts.append(Start(host, str(rank), command, environment))
    return starts


def _torchrun(shape: Shape, host: int, command: list[str]) -> Start:
    # The words behind the script are its own arguments.
    for word in takewhile(lambda word: word != "-m" and not word.endswith(".py"), command[1:]):
        name = word.split("=")[0].lstrip("-").replace("_", "-")
        if word.startswith("--") and name in _TORCHRUN_OPTIONS:
            raise ValueError(f"the cluster itself gives torchrun --{name}: leave out {word}")
    given = [
        f"--nnodes={len(shape.ranks)}",
        f"--nproc-per-node={shape.ranks[host]}",
        f"--node-rank={host}",
        f"--master-addr={address(0, 0)}",
        f"--master-port={PORT}",
    ]
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return Start(host, host_name(host), [command[0], *given, *command[1:]], threads)


def _mpi(shape: Shape) -> dict[str, str]:
    """Settings of the MPIs; each reads its own. Variables and arguments of the user count more."""
    settings = _open_mpi(shape) | _hydra(shape)
    return {name: value for name, value in settings.items() if name not in os.environ}


def open_mpi_on_shared_cores(shape: Shape) -> dict[str, str]:
    """Settings by which Open MPI lets root start ranks on hosts that share this machine's cores."""
    settings = {
        "hwloc_base_binding_policy": "none",
        "rmaps_base_oversubscribe": "1",
        # Ranks that share a core and do not yield wait for one another's time slices.
        "mpi_yield_when_idle": str(int(shape.world > len(os.sched_getaffinity(0)))),
    }
    permission = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return _open_mpi_variables(settings) | permission


def _open_mpi_variables(settings: dict[str, str]) -> dict[str, str]:
    return {f"OMPI_MCA_{name}": value for name, value in settings.items()}


def _open_mpi(shape: Shape) -> dict[str, str]:
    settings = {
        "plm_rsh_agent": _ENTER,
        "orte_default_hostfile": "/dev/shm/hosts.openmpi",
        "oob_tcp_if_include": interface(0),
        "btl": "tcp,vader,self",
        "pml": "ob1",
        "btl_tcp_if_include": shape.interfaces,
        "rmaps_base_mapping_policy": "slot",
    }
    return _open_mpi_variables(settings) | open_mpi_on_shared_cores(shape)


def _hydra(shape: Shape) -> dict[str, str]:
    return {
        "HYDRA_HOST_FILE": "/dev/shm/hosts.hydra",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": _ENTER,
        "HYDRA_IFACE": interface(0),
        "UCX_NET_DEVICES": shape.interfaces,
        "UCX_TLS": "tcp,sm,self",
        "I_MPI_HYDRA_HOST_FILE": "/dev/shm/hosts.hydra",
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": _ENTER,
        "I_MPI_HYDRA_IFACE": interface(0),
        "I_MPI_FABRICS": "shm:ofi",
        "I_MPI_OFI_PROVIDER": "tcp",
        "I_MPI_PIN": "0",
        "FI_TCP_IFACE": interface(0),
    }


def host_files(shape: Shape) -> dict[str, str]:
    """The lists of hosts that mpirun reads, by the names that its settings have for them."""
    names = [(host_name(host), shape.ranks[host]) for host in shape.hosts]
    return {
        "/dev/shm/hosts.openmpi": "".join(f"{name} slots={ranks}\n" for name, ranks in names),
        "/dev/shm/hosts.hydra": "".join(f"{name}:{ranks}\n" for name, ranks in names),
    }
