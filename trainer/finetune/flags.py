"""The flags and their defaults: llama-recipes' names, and a few that this trainer adds."""

from dataclasses import dataclass, field

PROGRAM = "finetuning"


class FlagError(Exception):
    """A flag, a value or a file that cannot work; its text says which and what to try."""


@dataclass
class TrainConfig:
    """The model, the loop and what is saved."""

    model_name: str | None = None
    tokenizer_name: str | None = None
    enable_fsdp: bool = False
    low_cpu_fsdp: bool = False
    run_validation: bool = True
    batch_size_training: int = 4
    batching_strategy: str = "packing"
    context_length: int = 4096
    gradient_accumulation_steps: int = 1
    gradient_clipping: bool = False
    gradient_clipping_threshold: float = 1.0
    num_epochs: int = 3
    max_train_step: int = 0
    max_eval_step: int = 0
    num_workers_dataloader: int = 1
    lr: float = 1e-4
    weight_decay: float = 0.0
    gamma: float = 0.85
    seed: int = 42
    use_fp16: bool = False
    mixed_precision: bool = True
    val_batch_size: int = 1
    dataset: str = "samsum_dataset"
    peft_method: str = "lora"
    use_peft: bool = False
    from_peft_checkpoint: str = ""
    output_dir: str | None = None
    freeze_layers: bool = False
    num_freeze_layers: int = 1
    freeze_LLM_only: bool = False  # noqa: N815  (llama-recipes' name)
    quantization: str | None = None
    one_gpu: bool = False
    save_model: bool = True
    dist_checkpoint_root_folder: str | None = None
    dist_checkpoint_folder: str = "fine-tuned"
    save_optimizer: bool = False
    use_fast_kernels: bool = False
    use_wandb: bool = False
    save_metrics: bool = False
    flop_counter: bool = False
    flop_counter_start: int = 3
    use_profiler: bool = False
    profiler_dir: str = ""
    precision: str | None = None
    device: str | None = None
    backend: str = "fccl"
    save_hf: bool = True
    save_every: int = 0
    auto_resume: bool = False


@dataclass
class FsdpConfig:
    """How the model is sharded, and the optimizer."""

    mixed_precision: bool = True
    use_fp16: bool = False
    sharding_strategy: str = "FULL_SHARD"
    hsdp: bool = False
    sharding_group_size: int = 0
    replica_group_size: int = 0
    checkpoint_type: str = "SHARDED_STATE_DICT"
    fsdp_activation_checkpointing: bool = True
    fsdp_cpu_offload: bool = False
    pure_bf16: bool = False
    optimizer: str = "AdamW"


@dataclass
class LoraFlags:
    """The adapter, where `--use_peft` asks for one."""

    r: int = 8
    lora_alpha: int = 32
    target_modules: list[str] = field(default_factory=lambda: ["q_proj", "v_proj"])
    bias: str = "none"
    task_type: str = "CAUSAL_LM"
    lora_dropout: float = 0.05
    inference_mode: bool = False


@dataclass
class SamsumFlags:
    """Dialogues and their summaries."""

    train_split: str = "train"
    test_split: str = "validation"


@dataclass
class GrammarFlags:
    """Sentences and their corrections, in two files of CSV."""

    train_split: str = ""
    test_split: str = ""


@dataclass
class AlpacaFlags:
    """Instructions and outputs, in one file of JSON."""

    train_split: str = "train"
    test_split: str = "val"
    data_path: str = ""


@dataclass
class CustomFlags:
    """Samples that a function of the user's returns; it is given these flags."""

    file: str = ""
    train_split: str = "train"
    test_split: str = "validation"
    data_path: str = ""
    dataset: str = "custom_dataset"


DatasetFlags = SamsumFlags | GrammarFlags | AlpacaFlags | CustomFlags
DATASETS: dict[str, type[DatasetFlags]] = {
    "alpaca_dataset": AlpacaFlags,
    "custom_dataset": CustomFlags,
    "grammar_dataset": GrammarFlags,
    "samsum_dataset": SamsumFlags,
}


@dataclass
class Settings:
    """Everything a run depends on; the same on every rank."""

    train: TrainConfig
    fsdp: FsdpConfig
    lora: LoraFlags
    dataset: DatasetFlags
    ranks: int
    ranks_of_host: int

    @property
    def shards(self) -> int:
        """Ranks among which one copy of the parameters is split."""
        if self.fsdp.sharding_strategy == "NO_SHARD":
            return 1
        if self.fsdp.sharding_strategy != "HYBRID_SHARD":
            return self.ranks
        return self.fsdp.sharding_group_size if self.fsdp.hsdp else self.ranks_of_host
