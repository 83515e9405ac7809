"""All steps of ./dev efa for provider efa, on one machine, whose loopback stands for four EFAs."""

import socket
import sys
import time
from pathlib import Path

import efa
import fleet
import pytest
from archive import Archive
from efa_host import host_of
from runs import Setting
from test_efa import ROOT, TREE, needs_build

STAND_IN = TREE / "plugins/ofi/tests/efa_stand_in/libfccl_ofi.so"
SECONDS = 200.0  # most steps end long before


@pytest.fixture
def setting(tmp_path, monkeypatch):
    """Two agents on this machine, each for a p4d; their ranks count as those of two hosts."""
    variables_of = fleet.variables_of

    def of_two_hosts(plan, number, rank, count, meeting):
        return {"FCCL_HOST_ID": f"host{rank.host}"} | variables_of(plan, number, rank, count, meeting)

    monkeypatch.setattr(fleet, "variables_of", of_two_hosts)
    monkeypatch.setenv("FCCL_TRANSPORT_PLUGIN", str(STAND_IN))
    archive = Archive(tmp_path, "efa")
    words = [sys.executable, str(ROOT / "tools/efa/efa.py"), "agent"]
    reached = fleet.Fleet(["localhost", socket.gethostname()], "ssh", words, archive.file("agents.log"))
    hosts = [host_of("p4d.24xlarge", 4), host_of("p4d.24xlarge", 4, host="ip-10-0-0-2")]
    yield Setting(reached, hosts, "efa", 1, archive.note), archive
    reached.end()


@needs_build
@pytest.mark.slow
def test_every_step_runs_over_four_nics_and_the_provider_that_is_not_efa_is_found_out(setting):
    if not STAND_IN.exists():
        pytest.skip(f"there is no {Path(STAND_IN).relative_to(ROOT)}: ./dev test builds it")
    about, archive = setting
    rows = efa.run_all(about, time.monotonic() + SECONDS, archive)
    assert list(dict.fromkeys(row["probe"] for row in rows)) == list(efa.SHARES)
    bad = [row for row in rows if row["verdict"] in ("wrong", "failed", "not run")]
    print(*bad, sep="\n")
    assert [(row["probe"], row["what"]) for row in bad] == [("rails", "the network that the library takes")]
    assert "where efa was asked for" in bad[0]["note"]
    cases = {row["case"] for row in rows if row["probe"] == "table" and row["case"]}
    assert cases == {
        "0 NICs, provider tcp",
        "1 NIC, provider efa",
        "2 NICs, provider efa",
        "4 NICs, which are all, provider efa",
    }
    assert any(row["case"] == "NIC 3, rdmap82s0" for row in rows)
    assert about.costs.startswith("latency=")
