"""Asks ./dev for a word that is none of its commands, for help, and how far a long step is."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("word", "meant"), [("frain", "train"), ("tests", "test"), ("clutser", "cluster")])
def test_a_wrong_command_is_one_line_with_the_nearest_one(word: str, meant: str) -> None:
    ended = subprocess.run([ROOT / "dev", word], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"dev: no command is called '{word}'; did you mean {meant}? ./dev help lists all\n"


def printed_by_dev(*words: str) -> str:
    """What it prints, of which it makes no step: a step would say so on stderr."""
    ended = subprocess.run([ROOT / "dev", *words], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.fixture(scope="module")
def usage() -> str:
    return printed_by_dev("help")


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        (["build"], "./dev build [release", "builds the tests"),
        (["build", "debug"], "./dev build [release", "builds the tests"),
        (["test"], "./dev test   ", "(60 s), as root"),
        (["test", "faults"], "./dev test   ", "(60 s), as root"),
        (["lint"], "./dev lint [--all]", "checks that compile nothing"),
        (["release"], "./dev release [--torch", "SHA256SUMS"),
        (["docs"], "./dev docs ", "interfaces in C, C++ and Python"),
        (["hook"], "./dev hook ", "before each commit"),
        (["image"], "./dev image tests", "(as root)"),
    ],
)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_a_command_without_a_help_of_its_own_prints_its_lines_of_the_usage_and_does_nothing(
    words: list[str], first: str, last: str, option: str, usage: str
) -> None:
    printed = printed_by_dev(*words, option)
    assert printed.startswith(first) and printed.endswith(last + "\n")
    assert printed in usage
    begun = [line.split()[1] for line in printed.splitlines() if line.startswith("./dev")]
    assert begun == [words[0]] * re.findall(r"^\./dev (\w+)", usage, re.M).count(words[0])


@pytest.mark.parametrize(
    "command", ["train", "bench", "cluster", "slurm", "dashboards", "kube", "gpu", "efa"]
)
def test_a_command_with_a_help_of_its_own_prints_it_and_does_nothing(command: str) -> None:
    assert printed_by_dev(command, "--help").startswith("usage: ")


def test_the_help_of_a_command_that_runs_in_a_kubernetes_is_not_that_of_dev() -> None:
    script = """eval "$(sed -n '/^asks_for_help()/,/^}/p' dev)"; asks_for_help "$@" """
    for words, status in [(["--efa", "8", "-h"], 0), (["--", "kubectl", "--help"], 1), ([], 1)]:
        assert (
            subprocess.run(["bash", "-c", script, "script", *words], cwd=ROOT, timeout=60).returncode
            == status
        )


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
