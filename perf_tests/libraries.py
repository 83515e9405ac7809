"""The libraries that compare.py measures: FCCL, the limit of the host, MPIs as they come and tuned."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

# MPIs take memory for their temporary results in every call, which costs page faults unless malloc keeps it.
KEPT_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "536870912",
}
MPIRUNS = {
    "openmpi": ["mpirun.openmpi", "mpirun"],
    "mpich": ["mpirun.mpich", "mpiexec.hydra"],
    "intelmpi": [os.environ.get("I_MPI_ROOT", "build/intel-mpi") + "/bin/mpiexec.hydra"],
}
# All put rank r on core r, so that no library owes its time to another binding.
BINDING = {
    "openmpi": ["--allow-run-as-root", "--bind-to", "core", "--map-by", "core"],
    "mpich": ["-bind-to", "core"],
    "intelmpi": ["-genv", "I_MPI_PIN_CELL", "core"],
}
# More ranks than cores. MPICH and Intel MPI spin and never yield then, so that a call takes milliseconds.
OVERSUBSCRIBED = {
    "openmpi": [
        *("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
        *("--mca", "mpi_yield_when_idle", "1"),
    ],
    "mpich": [],
    "intelmpi": [],
}
FROM_MPIRUN = {
    "FCCL_TESTS_LAUNCHER": "",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


@dataclass(frozen=True)
class Library:
    """One library that is measured, and how its processes are started."""

    mpi: str | None = None  # whose mpirun; none: the first that there is
    settings: tuple[str, ...] = ()  # for mpirun
    environment: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ("--peer", "mpi")  # for the binary


SHARED_MEMORY = {"I_MPI_FABRICS": "shm"}
UCX = ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any")
PAIRWISE = {"MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM": "pairwise"}
RING = (
    "--mca",
    "coll_tuned_use_dynamic_rules",
    "1",
    "--mca",
    "coll_tuned_reduce_scatter_block_algorithm",
    "3",
)
LIBRARIES = {
    "fccl": Library(flags=()),
    "fccl_arena": Library(flags=("--buffers", "arena")),
    "limit": Library(flags=("--peer", "limit")),
    "old": Library(flags=()),
    "openmpi": Library("openmpi"),
    "openmpi_tuned": Library("openmpi", RING, KEPT_MEMORY),
    "openmpi_ucx": Library("openmpi", UCX, KEPT_MEMORY | {"UCX_TLS": "self,sm,cma"}),
    "openmpi_han": Library("openmpi", ("--mca", "coll_han_priority", "100")),
    "mpich": Library("mpich"),
    "mpich_tuned": Library("mpich", (), KEPT_MEMORY | PAIRWISE),
    "intelmpi": Library("intelmpi"),
    "intelmpi_tuned": Library("intelmpi", (), KEPT_MEMORY | SHARED_MEMORY),
}
LIMITED = ["all_gather", "reduce_scatter", "all_reduce"]  # collectives for which the limit has loops
OWN = [name for name, library in LIBRARIES.items() if not library.flags or "--buffers" in library.flags]


def find_mpirun(mpi: str) -> str | None:
    return next((found for name in MPIRUNS[mpi] if (found := shutil.which(name))), None)


def mpi_of(name: str) -> str:
    """The MPI whose mpirun starts this library's processes; ends the program if the host lacks it."""
    wanted = LIBRARIES[name].mpi
    choice = [wanted] if wanted else list(MPIRUNS)
    found = next((each for each in choice if find_mpirun(each)), None)
    if found is None:
        raise SystemExit(
            f"compare: there is none of {', '.join(MPIRUNS[choice[0]])}; install it or choose others"
        )
    return found


def launch_of(name: str, ranks: int) -> list[str]:
    """The mpirun line of this library on this host."""
    mpi = mpi_of(name)
    crowded = ranks > len(os.sched_getaffinity(0))
    mpirun = find_mpirun(mpi)
    assert mpirun is not None
    bound = OVERSUBSCRIBED[mpi] if crowded else BINDING[mpi]
    return [mpirun, *bound, "-np" if mpi == "openmpi" else "-n", str(ranks), *LIBRARIES[name].settings]


def binary_of(build: Path, collective: str) -> Path:
    return build / "perf_tests" / f"{collective}_perf"
