"""Commands of the pages that no test runs as they stand: why, and what is run in their place."""

import re
from dataclasses import dataclass

from pages import ROOT


@dataclass(frozen=True)
class Substitute:
    """A command as the pages write it, without its comment; why it is not run; what is."""

    command: str
    reason: str
    instead: str


PARSE = "import sys; from trainer.fsdp.arguments import parse; parse(sys.argv[1:])"


# -c, not -q: grep -q ends at the first match, and the program before the pipe may end by SIGPIPE then.
def _offered(command: str, reason: str) -> Substitute:
    return Substitute(command, reason, f"./dev help | grep -cF '{command}'")


def _planned(arguments: str, before: str = "") -> Substitute:
    """Arguments of the trainer that are only taken apart here; the trainer's own tests train with such."""
    ranks = "" if "--ranks" in arguments else "--ranks 2 "
    taken_apart = f'{before}python -c "{PARSE}" {ranks}{arguments}'
    return Substitute(f"./dev train {arguments}".strip(), "trains for minutes", taken_apart)


IMAGE_TRAININGS = [
    "python -m trainer.launch --standalone --nproc-per-node 2 --max-restarts 3 -m trainer.ddp images "
    "--arch resnet50",
    "torchrun --nnodes 1:4 --nproc-per-node 2 --max-restarts 9 --rdzv-backend etcd-v3 "
    "--rdzv-endpoint etcd:2379 -m trainer.ddp images",
    "torchrun --standalone --nproc-per-node 2 examples/imagenet/main.py images -a efficientnet_b7 -b 8 "
    "--checkpoint-every 100",
]

CPP_TRAININGS = [
    "",
    "--ranks 4 --steps 100 --name four --data docs",
    "--ranks 2 --steps 200 --resume four --data docs",
    "--help",
]


def _trained_in_cpp(arguments: str) -> Substitute:
    command = f"./dev train --cpp {arguments}".strip()
    reason = "builds and trains for minutes; trainer/cpp/tests train with such arguments"
    return Substitute(command, reason, "./dev help | grep -cF './dev train --cpp'")


def _clustered(arguments: str, instead: str = "") -> Substitute:
    """A cluster with the same or with smaller arguments; where there may be none, its own tests say so."""
    program = "python3 tools/cluster/cluster.py"
    run = f"{program} {instead or arguments}".replace("./dev cluster", program)
    return Substitute(
        f"./dev cluster {arguments}",
        "./dev would look for packages; smaller where it takes long",
        f"if unshare --net true; then {run}; fi",
    )


SLURM_COMMANDS = [
    "2x2 -- sbatch --wait deploy/slurm/fccl-tests.sbatch",
    "2x2 -- sbatch --wait deploy/slurm/fccl-tests-mpirun.sbatch all_reduce_perf -b 8 -e 1M -f 8",
    "2x2 -- salloc -N 2 --ntasks-per-node 2 mpirun build/perf_tests/all_gather_perf -b 8 -e 8",
    "2x1 --rate 1gbit -- srun -N 2 hostname",
    "2x2 --rails 4 --rate 100mbit -- salloc -N 2 build/efa-pack/run --provider tcp --seconds 300",
]


def _in_a_slurm(arguments: str) -> Substitute:
    """Its order is only taken apart here; tests/cluster run such commands."""
    parse = "import sys; sys.path.insert(0, 'tools/slurm'); import slurm, cluster; "
    parse += "cluster.parse(sys.argv[1:], plan=slurm.plan)"
    batch_files = re.findall(r"\S+\.sbatch", arguments)
    instead = f'python3 -c "{parse}" {arguments}' + "".join(f" && bash -n {each}" for each in batch_files)
    return Substitute(f"./dev slurm {arguments}", "./dev would install a Slurm", instead)


KUBE_COMMANDS = [
    "-- kubectl get nodes",
    "-- bash -c 'kubectl apply -k deploy/kubernetes/overlays/local && kubectl wait "
    "--for=condition=Succeeded mpijob/fccl-tests --timeout=120s && kubectl logs job/fccl-tests-launcher'",
    "--efa 8 -- kubectl describe node node0",
]


def _on_kubernetes(arguments: str) -> Substitute:
    """Its order is only taken apart here; tests/kubernetes run such commands."""
    parse = "import sys; sys.path.insert(0, 'tools/kube'); import kube; kube.parse(sys.argv[1:])"
    instead = f'python -c "{parse}" {arguments}'
    return Substitute(f"./dev kube {arguments}", "./dev would compile a Kubernetes", instead)


def _trains_images(command: str) -> Substitute:
    """Its arguments are only taken apart here; trainer/ddp/tests run the page's commands."""
    arguments = command.partition(" images")[2]
    parse = "import sys; from trainer.ddp.arguments import parse; parse(['images', *sys.argv[1:]])"
    return Substitute(command, "trains for minutes", f'python -c "{parse}" {arguments}')


REPLICAS = [
    "--replicas 2 --nproc-per-node 2 -m trainer.fsdp --steps 300",
    "--replicas 3 -m trainer.ddp images --arch squeezenet1_1 --dropout 0 --global-batch 12",
]


def _trains_replicas(arguments: str) -> Substitute:
    """Its arguments are only taken apart here; trainer/replicas/tests run the page's commands."""
    parse = "import sys; from trainer.replicas import arguments as a; a.place_of(a.parse(sys.argv[1:]))"
    command = f"python -m trainer.replicas {arguments}"
    return Substitute(command, "trains for minutes", f'python -c "{parse}" {arguments}')


PACKED = [
    "FCCL_TORCH=2.11.0 ./dev gpu --pack FOLDER",
    "FCCL_TORCH=2.11.0 ./dev gpu --pack build/pack",
    "./dev gpu --part first",
    "sh build/pack/run --part first --out OUT",
    "sh build/pack/run --part second --out OUT",
    "sh build/pack/run --part third --out OUT",
    "sh build/pack/run --part fourth --out OUT",
]


def _packed(command: str) -> Substitute:
    """Its option alone is looked up; tests/tools runs packs and parts on a fake driver."""
    option = "--pack" if "--pack" in command else "--part"
    return Substitute(
        command, "builds or measures for minutes", f"python3 tools/gpu/gpu.py --help | grep -cF -- '{option}'"
    )


def _on_forked_ranks(ranks: int, program: str, *modules: str) -> Substitute:
    """Its ranks load torch together; the page's program of a death runs under torchrun itself."""
    forking = ROOT / "torch_backend" / "tests" / "forked_ranks.py"
    return Substitute(
        f"torchrun --standalone --nproc-per-node {ranks} {program}",
        "loads torch in the launcher and in each rank",
        " ".join(["python", str(forking), str(ranks), program, *modules]),
    )


SWEEP = "a sweep up to this size takes long; its flags are run on smaller ones"

SUBSTITUTES = [
    _on_forked_ranks(2, "ranks.py", "torch._dynamo", "torch.distributed.fsdp"),
    _on_forked_ranks(4, "strategies.py", "torch._dynamo", "torch.distributed.fsdp"),
    _on_forked_ranks(2, "calls.py"),
    _on_forked_ranks(2, "waits.py"),
    Substitute(
        "mpirun -np 2 build/perf_tests/all_gather_perf -b 8 -e 64M -f 2",
        SWEEP,
        "mpirun -np 2 build/perf_tests/all_gather_perf -b 8 -e 64K -f 8 -n 2",
    ),
    Substitute(
        "build/perf_tests/all_gather_perf --device cuda -t 2 -b 8 -e 64M -f 8",
        "wants a GPU; perf_tests/tests runs such sweeps on a simulated one",
        "build/perf_tests/all_gather_perf --help | grep -cF '[--device <cpu|cuda>]'",
    ),
    Substitute(
        "build/perf_tests/reduce_scatter_perf -t 2 -e 1M -d all -o all --ulp",
        SWEEP,
        "build/perf_tests/reduce_scatter_perf -t 2 -d all -o all --ulp -b 8 -e 1K -f 16 -n 2",
    ),
    Substitute(
        "build/plugins/ofi/transport_benchmark build/libfccl_ofi.so tcp lo",
        "spins for seconds on both cores; fewer rounds",
        "build/plugins/ofi/transport_benchmark build/libfccl_ofi.so tcp lo 500",
    ),
    _clustered("2x2 --prefix -- bash -c 'echo $RANK of $WORLD_SIZE on $(hostname)'"),
    _clustered(
        "2x1 --rate 1gbit --counters -- mpirun build/perf_tests/all_gather_perf --peer mpi -b 16M -e 16M",
        "2x1 --rate 1gbit --counters -- mpirun build/perf_tests/all_gather_perf --peer mpi -b 1M -e 1M -n 2",
    ),
    Substitute(
        "./dev cluster 2x2 --rate 1gbit --counters -- torchrun ranks.py",
        "./dev would look for packages, and a reader has stored the program; smaller",
        "program=$(mktemp) && sed -n '/^# ranks.py/,/^```$/{/^```$/!p}' README.md >$program && "
        "if unshare --net true; "
        "then python3 tools/cluster/cluster.py 2x1 --rate 1gbit --counters -- torchrun $program; fi",
    ),
    _clustered(
        "2x2 --rate 1gbit --counters -- torchrun -m trainer.fsdp",
        "2x1 --rate 1gbit --counters -- torchrun -m trainer.fsdp --dry-run",
    ),
    _clustered(
        "2x2 --rate 1gbit --counters -- torchrun -m trainer.fsdp --strategy hybrid_shard --shard-degree 2",
        f'2x1 --rate 1gbit -- python -c "{PARSE}" --strategy hybrid_shard --shard-degree 1',
    ),
    _clustered("2x1 -- bash -c '((RANK)) || ./dev cluster link node1 0 down'"),
    _clustered(
        "2x1 -- bash -c '((RANK)) || ./dev cluster host node1 stop; "
        "((RANK)) || ./dev cluster host node1 cont'"
    ),
    _clustered("2x1 -- bash -c '((RANK)) || ./dev cluster counters'"),
    *map(_in_a_slurm, SLURM_COMMANDS),
    *map(_on_kubernetes, KUBE_COMMANDS),
    Substitute(
        "mpirun -np 4 --host node0:2,node1:2 build/perf_tests/all_gather_perf --calibrate | tee costs.txt",
        "there are no such hosts; a host that says it is two stands for them",
        "mpirun -np 2 bash -c 'FCCL_HOST_ID=$OMPI_COMM_WORLD_RANK "
        "exec build/perf_tests/all_gather_perf --calibrate -n 1' | tee costs.txt",
    ),
    Substitute("perf_tests/compare.py", "measures for minutes", "perf_tests/compare.py --help"),
    _planned("--ranks 4 --strategy hybrid_shard --shard-degree 2 --name hybrid"),
    _planned("--ranks 2 --resume hybrid"),
    _planned("--backend gloo"),
    _planned("--device cuda --precision bf16"),
    _planned(
        "--model ~/models/my-llama --data ~/texts --precision bf16 --activation-checkpointing --save-hf",
        before="HOME=$PWD; mkdir -p ~/models/my-llama; echo '{}' >~/models/my-llama/config.json; ",
    ),
    _planned("--dry-run --model llama2-70b --ranks 64 --strategy hybrid_shard --shard-degree 8"),
    _planned("--ranks 4 --tensor-parallel 2"),
    _planned(""),
    Substitute(
        "torchrun --standalone --nproc-per-node 2 --max-restarts 2 -m trainer.fsdp --save-every 100",
        "trains for minutes; trainer/fsdp/tests kill ranks of such a run",
        f'python -c "{PARSE}" --ranks 2 --save-every 100',
    ),
    *map(_packed, PACKED),
    *map(_trains_images, IMAGE_TRAININGS),
    *map(_trains_replicas, REPLICAS),
    *(_trained_in_cpp(arguments) for arguments in CPP_TRAININGS),
    Substitute(
        'cmake -S trainer/cpp -B built -D CMAKE_PREFIX_PATH="$PREFIX" '
        '-D Python3_EXECUTABLE="$(command -v python3)" && cmake --build built',
        "builds for a minute; ./dev test all does so",
        "grep -qF 'find_package(fccl REQUIRED)' trainer/cpp/CMakeLists.txt",
    ),
    Substitute(
        "mpirun -np 2 --bind-to none built/fccl_trainer --data docs --steps 100",
        "is not built here; trainer/cpp/tests train with such arguments",
        "grep -qF '\"--steps\"' trainer/cpp/arguments.cpp",
    ),
    *(
        Substitute(
            f"./dev image {kind}",
            "makes a Debian; ./dev test all does so",
            f"./dev help | grep -c 'image.*{kind}'",
        )
        for kind in ("tests", "etcd")
    ),
    Substitute(
        "./dev efa --pack build/efa-pack",
        "./dev would look for packages; tests/tools makes such a folder",
        "python3 tools/efa/efa.py --help | grep -cF -- --pack",
    ),
    _offered("./dev dashboards", "runs for half a minute; ./dev test all does so"),
    Substitute(
        "./dev dashboards --picture panels.png",
        "would install a browser",
        "python3 tools/dashboards/dashboards.py --help | grep -cF -- --picture",
    ),
    _offered("./dev release", "builds for many minutes; ./dev test all does so"),
    Substitute(
        "cmake --build build && cpack --config build/CPackConfig.cmake -B build",
        "builds the whole tree and packs it",
        "cmake --build build --target help | grep -c '^package: '",
    ),
    _offered("./dev gpu", "builds for minutes; tests/tools runs its steps on a simulated GPU"),
    _offered("./dev test", "it is what runs this test"),
    _offered("./dev test quick", "./dev test runs these tests"),
    _offered("./dev build", "./dev test has built what the pages use"),
    _offered("./dev lint", "continuous integration runs it beside the tests"),
    _offered("./dev hook", "it changes the settings of the checkout that runs this test"),
    Substitute(
        "pip install --no-build-isolation .",
        "compiles for a minute; ./dev test has installed the package this way",
        'python -c "from importlib.metadata import entry_points as points; '
        "points(group='torch.distributed.backends')['fccl']\"",
    ),
    Substitute(
        "cmake --install build --prefix /usr/local && ldconfig",
        "writes to the system",
        'cmake --install build --prefix "$PREFIX"',
    ),
    Substitute(
        "srun --ntasks-per-node 1 torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d "
        "--rdzv-endpoint node0:29500 train.py",
        "there is no Slurm; other blocks run torchrun with these arguments",
        "command -v torchrun",
    ),
]
