"""The settings that AWS's FSDP, DDP, elasticjob and llama2 files give their jobs: names and values, one
row each.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One setting: what the environment has, or what stands on torchrun's or the trainer's command line."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()


ENVIRONMENT = (
    Row("provider", {"FI_PROVIDER": "efa"}),
    Row("device-rdma", {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}),
    Row("fork-safe", {"FI_EFA_FORK_SAFE": "1", "RDMAV_FORK_SAFE": "1"}),
    Row("no-huge-pages", {"FI_EFA_USE_HUGE_PAGE": "0"}),
    Row("interfaces", {"NCCL_SOCKET_IFNAME": "^docker,lo,veth"}),
    Row("interfaces-but-loopback", {"NCCL_SOCKET_IFNAME": "^lo"}),
    Row("debug", {"NCCL_DEBUG": "INFO"}),
    Row("ring", {"NCCL_ALGO": "Ring"}),
    Row("errors", {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_BLOCKING_WAIT": "1"}),
    Row("recorder", {"TORCH_NCCL_TRACE_BUFFER_SIZE": "20000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}),
    Row("detail", {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    Row("segments", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "LOGLEVEL": "DEBUG"}),
)
"""Each is given to two ranks that train by FSDP2 and by DistributedDataParallel."""

LAUNCHES = (
    Row(
        "rendezvous",
        words=("--nnodes=1", "--rdzv-id=7", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"),
    ),
    Row("elastic", words=("--nnodes=1:1", "--max-restarts=3", "--rdzv-id=7", "--rdzv-backend=c10d")),
    Row(
        "underscores",
        words=("--nproc_per_node=2", "--rdzv_id=7", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"),
    ),
    Row("log-level", {"LOGLEVEL": "DEBUG"}, ("--standalone",)),
    Row(
        "job-of-kubernetes",
        {
            "PET_NNODES": "1:1",
            "PET_NPROC_PER_NODE": "2",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "localhost:0",
            "PET_RDZV_ID": "7",
            "PET_MAX_RESTARTS": "3",
        },
    ),
)
"""What stands between torchrun and the program, or in the environment of a PyTorchJob's pods."""

TRAINER_LINES = (
    Row(
        "llama2",
        words=(
            "--num_layers=2",
            "--hidden_width=64",
            "--max_steps=2",
            "--train_batch_size=1",
            "--sharding_strategy=full",
            "--checkpoint_freq=50",
            "--validation_freq=100",
        ),
    ),
    Row(
        "checkpoints",
        words=(
            "--max_context_width=64",
            "--resume_from_checkpoint=./checkpoints",
            "--checkpoint_dir=./checkpoints",
            "--dataset=c4",
            "--tokenizer=hf-internal-testing/llama-tokenizer",
        ),
    ),
    Row("sharding", words=("--model_type=llama_v2", "--sharding_strategy=hybrid", "--offload_activations=1")),
)
"""Flags of AWS's FSDP train.py that the trainer of this project does not have under these names."""

CLASSIFIER_LINES = (
    Row("tiny-imagenet", words=("--arch=resnet18", "--epochs=1", "--batch-size=32", "--workers=0")),
    Row("short", words=("-a", "resnet18", "-j", "2", "-b", "32", "--lr", "0.1", "-p", "10", "--wd", "1e-4")),
    Row(
        "gloo", words=("--dist-backend", "gloo", "--momentum=0.9", "--weight-decay=0.0001", "--print-freq=50")
    ),
    Row("checkpoint", words=("--arch", "efficientnet_b7", "--batch-size", "2", "--learning-rate=0.01")),
)
"""Flags of TorchElastic's ImageNet example, as the DDP and elasticjob files have them behind the images."""

CLASSIFIER_REFUSALS = (
    Row("nccl", words=("--dist-backend=nccl", "--epochs=2")),
    Row("uneven", words=("--batch-size=33", "--epochs=2")),
)
"""The same without a GPU, and with more images for a step than there are."""
