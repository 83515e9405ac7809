"""The folder of ./dev efa --pack between emulated hosts, by srun and by ssh: all but what an EFA has."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT
from test_slurm import PROGRAM as SLURM
from test_slurm import there_is_a_slurm  # noqa: F401

pytestmark = pytest.mark.slurm

TREE = Path(os.environ.get("FCCL_BUILD", ROOT / "build"))
LIMIT = 360
RAILS, RATE = 4, "100mbit"
LEAST_GAIN = 3.5  # the bandwidth of four NICs over that of one
STEPS = [
    "machine",
    "devices",
    "limits",
    "rails",
    "loopback",
    "pair",
    "collectives",
    "table",
    "calibrate",
    "death",
]
# By ssh's options and the name of a host, runs what is behind them there.
SSH = f"""#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
exec {sys.executable} {ROOT}/tools/cluster/enter.py "$@"
"""


@pytest.fixture
def folder(tmp_path):
    """Makes a folder by ./dev efa --pack."""
    packing = [
        sys.executable,
        str(ROOT / "tools/efa/efa.py"),
        "--pack",
        str(tmp_path / "pack"),
        "--tree",
        str(TREE),
    ]
    said = subprocess.run(packing, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    return tmp_path / "pack"


def rows_in(place):
    """The rows of the one archive that lies there."""
    (packed,) = place.glob("fccl-efa-node0-*.tar.gz")
    with tarfile.open(packed) as archive:
        (name,) = (name for name in archive.getnames() if name.endswith("/efa.json"))
        return json.load(archive.extractfile(name))["rows"]


def assert_all_ran(rows):
    assert list(dict.fromkeys(row["probe"] for row in rows)) == STEPS
    not_run = {row["probe"] for row in rows if row["verdict"] == "not run"}
    assert not_run == {"devices", "limits"}, [row for row in rows if row["verdict"] == "not run"]
    bad = [row for row in rows if row["verdict"] in ("wrong", "failed")]
    assert bad == []


def value_of(rows, probe, what):
    (row,) = (row for row in rows if (row["probe"], row["what"]) == (probe, what))
    return row["value"]


def test_in_an_allocation_all_but_devices_and_limits_run_and_four_nics_carry_what_four_can(
    run, folder, tmp_path
):
    words = ["salloc", "-N", "2", str(folder / "run"), "--provider", "tcp", "--seconds", "300"]
    shape = ["2x2", "--rails", str(RAILS), "--rate", RATE]
    said = run(*shape, "--", *words, program=SLURM, limit=LIMIT)
    assert said.returncode == 0, said.stdout + said.stderr
    rows = rows_in(tmp_path)
    assert_all_ran(rows)
    gain = value_of(rows, "table", f"{RAILS} NICs over 1")
    print(f"{RAILS} NICs carry {gain:.2f} times what one does")
    assert gain >= LEAST_GAIN
    assert value_of(rows, "death", "the other ranks of all_reduce end") < 15_000


def test_without_an_efa_an_allocation_is_told_so(run, folder, tmp_path):
    said = run("2x1", "--", "salloc", "-N", "2", str(folder / "run"), program=SLURM)
    assert said.returncode == 2
    assert "efa: node0 has no EFA: it is " in said.stderr
    assert not list(tmp_path.glob("*.tar.gz"))


def test_ssh_reaches_hosts_that_are_named(run, folder, environment, tmp_path):
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    environment["PATH"] = f"{ssh.parent}:{environment['PATH']}"
    on_the_first = f'[ "$RANK" = 0 ] || exit 0; exec {folder}/run "$@"'
    words = [
        "bash",
        "-c",
        on_the_first,
        "run",
        "--hosts",
        "node0,node1",
        "--provider",
        "tcp",
        "--seconds",
        "120",
    ]
    said = run("2x1", "--rails", "2", "--rate", RATE, "--", *words, limit=LIMIT)
    assert said.returncode == 0, said.stdout + said.stderr
    rows = rows_in(tmp_path)
    assert_all_ran(rows)
    assert value_of(rows, "table", "2 NICs over 1") > 1.5
