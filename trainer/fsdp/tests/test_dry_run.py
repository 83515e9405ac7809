"""What --dry-run prints without starting a process group."""

import pytest

from trainer.fsdp.arguments import parse
from trainer.fsdp.dry_run import describe, groups_of, memory_per_rank, shapes_only


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("llama2-7b", 6_738_415_616), ("llama2-13b", 13_015_864_320), ("llama2-70b", 68_976_648_192)],
)
def test_preset_has_the_published_number_of_parameters(model: str, parameters: int) -> None:
    groups = groups_of(shapes_only(parse(["--model", model])))
    assert sum(group.elements(1) for group in groups) == parameters


def test_text_names_parameters_memory_and_collectives() -> None:
    text = describe(parse(["--ranks", "2", "--dry-run"]))
    assert "1,869,888 parameters" in text
    assert "peak of a step" in text
    assert "all_gather           9 calls" in text
    assert "reduce_scatter       5 calls" in text


def test_sharding_divides_what_a_rank_keeps() -> None:
    kept = {}
    for ranks in (1, 4):
        settings = parse(["--model", "125m", "--ranks", str(ranks)])
        kept[ranks] = memory_per_rank(settings, groups_of(shapes_only(settings)), 0)["parameters, fp32"]
    assert kept[4] * 4 == kept[1]


def test_activation_checkpointing_keeps_less() -> None:
    def activations(*more: str) -> int:
        from trainer.fsdp.dry_run import saved_activations

        return saved_activations(parse(["--model", "125m", *more]))

    assert activations("--activation-checkpointing") < activations() / 3
