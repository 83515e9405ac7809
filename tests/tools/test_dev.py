"""./dev answers a word that is none of its commands, and says how far a long step is."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("word", "meant"), [("frain", "train"), ("tests", "test"), ("clutser", "cluster")])
def test_a_wrong_command_is_one_line_with_the_nearest_one(word: str, meant: str) -> None:
    ended = subprocess.run([ROOT / "dev", word], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"dev: no command is called '{word}'; did you mean {meant}? ./dev help lists all\n"


@pytest.mark.parametrize("words", [[], ["--"], ["--efa", "8"], ["kubectl", "get", "nodes"]])
def test_a_kubernetes_without_a_command_is_refused_before_it_is_made(words: list[str]) -> None:
    ended = subprocess.run([ROOT / "dev", "kube", *words], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "dev: say -- and a COMMAND: ./dev kube [--efa N] -- COMMAND\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "say which image: tests train etcd"),
        (["nobody"], "say which image: tests train etcd"),
        (["train"], "FCCL_WHEEL names no file"),
    ],
)
def test_an_image_that_cannot_be_built_is_refused_before_anything_is_installed(
    words: list[str], complaint: str
) -> None:
    environment = os.environ | {"FCCL_WHEEL": "/nowhere.whl"}
    command = [ROOT / "dev", "image", *words]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"build.sh: {complaint}")


@pytest.mark.parametrize(
    ("printed", "progress"),
    [
        ("[1/60] compile\n[55/60] link\nnote: x[3]\n", "[55/60] "),
        ("[ 40%] Built target a\n", "[ 40%] "),
        ("", ""),
    ],
)
def test_without_a_terminal_a_long_step_says_how_far_it_is_and_where_its_output_is(
    printed: str, progress: str, tmp_path: Path
) -> None:
    log = tmp_path / "build.log"
    log.write_text(printed)
    half_a_minute = "n=0; sleep() { ((++n <= 30)); }"
    script = f'source .ci/steps.sh; {half_a_minute}; tick "build it" "$1"'
    ended = subprocess.run(
        ["bash", "-c", script, "tick", str(log)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.stderr == f"  … build it (30 s) {progress}{log}\n"
