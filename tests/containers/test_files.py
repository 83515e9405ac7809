"""The scripts and Dockerfiles of deploy/containers: their commands, and what they say is missing."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "containers"
DOCKERFILES = sorted(FOLDER.glob("*.Dockerfile"))
# The base decides versions of packages; ARG PACKAGES is a list of words.
NOT_WANTED = ["DL3008", "DL3059", "SC2086"]


@pytest.fixture
def copy(tmp_path):
    """The folder, where a test may change files."""
    shutil.copytree(FOLDER, tmp_path / "deploy" / "containers")
    return tmp_path / "deploy" / "containers"


def run(script, *words, **variables):
    cleared = {
        name: value for name, value in os.environ.items() if name not in {"REGISTRY", "IMAGE", "TAG", "BASE"}
    }
    return subprocess.run([str(script), *words], env=cleared | variables, capture_output=True, text=True)


def test_a_dry_run_prints_the_commands_with_the_names_of_the_file(copy):
    said = run(copy / "build.sh", "etcd", "--dry-run", CONTAINER_TOOL="podman")
    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == [
        *[
            "podman",
            "build",
            "--build-arg",
            "BASE=docker.io/library/debian:bookworm",
            "-t",
            "localhost/etcd:latest",
        ],
        *["-f", str(copy / "etcd.Dockerfile"), "/tmp/context"],
    ]


def test_variables_of_the_environment_count_more_than_the_file(copy):
    said = run(
        copy / "push.sh", "tests", "--dry-run", CONTAINER_TOOL="docker", REGISTRY="a.example/b", TAG="1"
    )
    assert said.stdout == "docker push a.example/b/fccl-tests:1 \n"


@pytest.mark.parametrize(
    ("variable", "line"),
    [("REGISTRY", "REGISTRY=localhost"), ("TAG", "TAG=latest"), ("BASE", "BASE=docker.io")],
)
def test_a_missing_value_is_named_with_the_line_that_mends_it(copy, variable, line):
    settings = copy / ".env"
    settings.write_text(
        "".join(f"{each}\n" for each in settings.read_text().splitlines() if variable not in each)
    )
    said = run(copy / "build.sh", "etcd", "--dry-run")
    assert said.returncode == 1
    assert f".env has no {variable}: add the line {line}" in said.stderr


@pytest.mark.parametrize(
    ("words", "variables", "complaint"),
    [
        (["build.sh"], {}, "say which image: tests train etcd"),
        (["build.sh", "etcd", "--wet-run"], {}, "there is no option --wet-run"),
        (["build.sh", "train", "--dry-run"], {"FCCL_WHEEL": "/nowhere.whl"}, "FCCL_WHEEL names no file"),
        (["build.sh", "tests", "--dry-run"], {}, "has no perf binaries: run ./dev build first"),
        (["build.sh", "etcd"], {"CONTAINER_TOOL": "no-tool"}, "there is no no-tool: install it"),
        (
            ["push.sh", "etcd"],
            {"CONTAINER_TOOL": "true"},
            "REGISTRY is localhost, where nothing can be pushed",
        ),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_do(copy, words, variables, complaint):
    said = run(copy / words[0], *words[1:], **variables)
    assert said.returncode == 1
    assert complaint in said.stderr


def test_the_image_of_the_trainer_has_the_versions_that_its_tests_ran_with():
    text = (FOLDER / "fccl-train.Dockerfile").read_text()
    tested = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / ".ci/requirements.txt").read_text(), re.M))
    torch = re.search(r"^ARG TORCH=(\S+)$", text, re.M)[1]
    named = {"torch": torch} | dict(re.findall(r"\b([\w-]+)==([\d.]+)", text))
    assert {"numpy", "transformers", "tqdm", "matplotlib", "python-etcd"} <= set(named)
    assert named == {name: tested[name] for name in named}


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_hadolint_finds_no_fault(file):
    fetched = ROOT / "build" / "hadolint" / "bin" / "hadolint"
    program = str(fetched) if fetched.exists() else shutil.which("hadolint")
    if program is None:
        pytest.skip("there is no hadolint: ./dev test all fetches it")
    ignored = [word for rule in NOT_WANTED for word in ("--ignore", rule)]
    said = subprocess.run([program, *ignored, str(file)], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout
