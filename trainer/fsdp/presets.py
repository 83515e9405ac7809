"""The models that can be trained by name: their shape, and settings that suit them."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Shape:
    """The numbers that make one Llama different from another."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    key_value_heads: int
    vocabulary: int
    norm_epsilon: float = 1e-5

    def resized(self, layers: int | None, hidden: int | None) -> "Shape":
        """The same model with another depth or width; the feed-forward width keeps its ratio."""
        wider = replace(self, layers=layers or self.layers)
        if hidden is None:
            return wider
        return replace(wider, hidden=hidden, intermediate=self.intermediate * hidden // self.hidden)


@dataclass(frozen=True)
class Preset:
    """A shape, and the settings that hold unless the command line says otherwise."""

    shape: Shape
    seq_len: int
    global_batch: int
    lr: float
    steps: int
    warmup: int


BYTE_VOCABULARY = 257
"""256 byte values and the end of a text."""

PRESETS = {
    "tiny": Preset(
        Shape(4, 192, 512, 4, 4, BYTE_VOCABULARY),
        seq_len=128, global_batch=16, lr=3e-3, steps=350, warmup=20,
    ),
    "125m": Preset(
        Shape(12, 768, 1728, 12, 12, 32000),
        seq_len=1024, global_batch=32, lr=6e-4, steps=5000, warmup=200,
    ),
    "llama2-7b": Preset(
        Shape(32, 4096, 11008, 32, 32, 32000),
        seq_len=4096, global_batch=64, lr=3e-4, steps=10000, warmup=500,
    ),
    "llama2-13b": Preset(
        Shape(40, 5120, 13824, 40, 40, 32000),
        seq_len=4096, global_batch=64, lr=3e-4, steps=10000, warmup=500,
    ),
    "llama2-70b": Preset(
        Shape(80, 8192, 28672, 64, 8, 32000),
        seq_len=4096, global_batch=64, lr=1.5e-4, steps=10000, warmup=500,
    ),
}  # fmt: skip

CHECKPOINT_FOLDER = {"seq_len": 512, "global_batch": 16, "lr": 2e-5, "steps": 200, "warmup": 20}
"""Settings for a model that is read from a folder, and so has been trained before."""
