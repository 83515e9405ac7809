"""A transport of one's own: examples/transport, built against an installed prefix, between two hosts."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

BUILD = ROOT / "build"
PERF = BUILD / "perf_tests/all_gather_perf"
PLUGIN = "FCCL_TRANSPORT_PLUGIN"
MPIRUN = "mpirun.openmpi"

pytestmark = [
    pytest.mark.skipif(
        not PERF.exists() or not PERF.with_name("libfccl_launch_openmpi.so").exists(),
        reason=f"{PERF} and its launcher for Open MPI are not built",
    ),
    pytest.mark.skipif(
        not shutil.which(MPIRUN) or not shutil.which("cmake"),
        reason="Open MPI or cmake is not installed",
    ),
]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as somebody builds it who has nothing of FCCL but a prefix."""
    folder = tmp_path_factory.mktemp("outside")
    prefix, built = folder / "prefix", folder / "built"
    for component in ("runtime", "development"):
        done(
            [
                "cmake",
                "--install",
                str(BUILD),
                "--prefix",
                str(prefix),
                "--component",
                component,
            ]
        )
    sources = shutil.copytree(ROOT / "examples/transport", folder / "sources")
    done(["cmake", "-S", str(sources), "-B", str(built), f"-DCMAKE_PREFIX_PATH={prefix}"])
    done(["cmake", "--build", str(built)])
    return built / "libplain_tcp.so"


def done(command: list[str]) -> str:
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def gather(run, environment, tmp_path: Path, **settings: str) -> tuple[subprocess.CompletedProcess, Path]:
    """AllGather from 8 bytes to 4 MiB between two hosts, data checked."""
    environment |= {"FCCL_LOG": "info"} | settings
    file = tmp_path / "rows.json"
    words = [
        str(PERF),
        "-b",
        "8",
        "-e",
        "4M",
        "-f",
        "8",
        "-n",
        "5",
        "-w",
        "1",
        "-J",
        str(file),
    ]
    return run("2x1", "--", MPIRUN, *words), file


def test_a_transport_that_is_built_outside_carries_an_all_gather_by_the_variable_alone(
    run, environment, tmp_path, plugin
):
    said, file = gather(run, environment, tmp_path, **{PLUGIN: str(plugin)})
    assert said.returncode == 0, said.stdout + said.stderr
    assert "between hosts: plain-tcp, an example of a transport" in said.stderr
    rows = json.loads(file.read_text())
    assert rows["out_of_bounds"]["count"] == 0
    assert len(rows["results"]) == 7


def test_it_exports_its_plug_in_and_needs_no_library_of_fccl(plugin):
    exported = done(["nm", "-D", "--defined-only", str(plugin)]).split("\n")
    assert [line.split()[-1] for line in exported if " D " in line] == ["fccl_transport_plugin"]
    assert "libfccl" not in done(["readelf", "-d", str(plugin)]).replace("libplain_tcp", "")


def test_hosts_of_which_one_has_the_plug_in_fail_on_both_with_the_setting(run, environment, tmp_path, plugin):
    wanting = tmp_path / "one_host.sh"
    wanting.write_text(
        f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] && export {PLUGIN}={plugin}\nexec {PERF} -b 8 -e 8\n'
    )
    wanting.chmod(0o755)
    said = run("2x1", "--", MPIRUN, str(wanting))
    assert said.returncode != 0
    assert "takes plain-tcp between hosts" in said.stderr
    assert f"set {PLUGIN} on all hosts or on none" in said.stderr


def test_a_plug_in_that_is_not_there_fails_with_the_setting_and_its_path(run, environment, tmp_path):
    said, _ = gather(run, environment, tmp_path, **{PLUGIN: "/nowhere/libnet.so"})
    assert said.returncode != 0
    assert f"{PLUGIN}=/nowhere/libnet.so cannot be found on this host" in said.stderr
    assert os.strerror(2) in said.stderr
