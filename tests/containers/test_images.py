"""Images that ./dev image has built: what they hold, and ranks in two containers of them."""

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "build" / "image" / "containers.conf"
ENVIRONMENT = os.environ | {"CONTAINERS_CONF": str(CONFIGURATION)}
SMALL = ["all_gather_perf", "-b", "8", "-e", "64K", "-f", "64", "-n", "2"]
TIME_LIMIT = 120


def podman(*words):
    return subprocess.run(
        ["podman", *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=TIME_LIMIT
    )


def containers():
    return sorted(podman("ps", "--all", "--quiet", "--no-trunc").stdout.split())


@pytest.fixture(autouse=True)
def there_are_images():
    if os.geteuid() != 0 or shutil.which("podman") is None or not CONFIGURATION.exists():
        pytest.skip("there are no images here: ./dev image, as root, builds them")


@pytest.fixture(autouse=True)
def nothing_is_left_behind(there_are_images):
    before = containers(), sorted(os.listdir("/sys/class/net"))
    yield
    assert (containers(), sorted(os.listdir("/sys/class/net"))) == before


def assert_measured(said, hosts):
    assert said.returncode == 0, said.stdout + said.stderr
    assert "# Out of bounds values : 0 OK" in said.stdout
    assert set(re.findall(r"^#  Rank +\d+ Group +0 Pid +\d+ on +(\w+) ", said.stdout, re.M)) == hosts


def test_the_binaries_lie_where_manifests_look_for_them_and_the_paths_of_aws_come_first():
    said = podman(
        "run",
        "--rm",
        "--network",
        "none",
        "localhost/fccl-tests",
        "sh",
        "-c",
        "ls /opt/fccl-tests/build; echo $PATH; echo $LD_LIBRARY_PATH",
    )
    *names, path, libraries = said.stdout.split()
    assert {"all_gather_perf", "reduce_scatter_perf", "fccl-info", "libfccl_launch_openmpi.so"} <= set(names)
    assert path.startswith("/opt/amazon/openmpi/bin:/opt/amazon/efa/bin:/opt/fccl-tests/build:")
    assert libraries == "/opt/amazon/efa/lib:/opt/amazon/openmpi/lib:/opt/fccl/lib"


def test_a_manifest_of_aws_finds_mpirun_and_our_libraries_by_paths_of_its_own():
    paths = ["--env", "PATH=$PATH:/usr/bin", "--env", "LD_LIBRARY_PATH=/opt/amazon/openmpi/lib"]
    asked = (
        "/opt/amazon/openmpi/bin/mpirun --version; ls -L /opt/amazon/openmpi/bin/orted;"
        "ldd /opt/fccl-tests/build/all_gather_perf /opt/fccl/lib/libfccl_ofi.so"
    )
    said = podman("run", "--rm", "--network", "none", *paths, "localhost/fccl-tests", "/bin/sh", "-c", asked)
    assert said.returncode == 0, said.stderr
    assert "mpirun (Open MPI)" in said.stdout
    assert "libfccl.so.0 => /opt/fccl/lib/" in said.stdout
    assert "not found" not in said.stdout


def test_ranks_of_one_container_measure_with_nothing_wrong():
    # The settings of the image leave lo out, which is all that such a container has.
    settings = ["--env", "OMPI_MCA_btl=self,vader", "--env", "FCCL_SOCKET_IFNAME=lo"]
    words = ["run", "--rm", "--network", "none", "--hostname", "alone", *settings, "localhost/fccl-tests"]
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"]
    assert_measured(podman(*words, *mpirun, *SMALL), {"alone"})


def test_ranks_of_two_containers_measure_with_nothing_wrong(tmp_path):
    keys = tmp_path / "ssh"
    keys.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(keys / "id_ecdsa")], check=True)
    shutil.copy(keys / "id_ecdsa.pub", keys / "authorized_keys")
    apart = ["unshare", "--net", "--mount", "--propagation", "private"]
    script = str(Path(__file__).with_name("two_containers.sh"))
    said = subprocess.run(
        [*apart, script, str(tmp_path), *SMALL],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )
    assert_measured(said, {"a", "b"})


def test_etcd_answers_by_the_interface_that_torch_speaks():
    with socket.socket() as asking:
        if asking.connect_ex(("127.0.0.1", 2379)) == 0:
            pytest.skip("somebody else listens at port 2379 here, who would answer in the place of the image")
    identity = podman("run", "--detach", "--network", "host", "localhost/etcd").stdout.strip()
    try:
        for _ in range(100):
            try:
                with urllib.request.urlopen("http://127.0.0.1:2379/v2/keys/", timeout=5) as answer:
                    assert json.load(answer)["action"] == "get"
                    break
            except OSError:
                subprocess.run(["sleep", "0.1"], check=True)
        else:
            pytest.fail(podman("logs", identity).stderr)
    finally:
        podman("rm", "--force", "--time", "1", identity)
