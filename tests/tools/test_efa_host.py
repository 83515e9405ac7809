"""./dev efa describes a host, here over stand-ins of its files and of EFA's library."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import device_limits
import instance
import judged
import pytest
from efa_host import GIB, host_of, write

ROOT = Path(__file__).resolve().parents[2]


def verdicts(rows) -> dict[str, str]:
    return {each["what"]: each["verdict"] for each in rows}


@pytest.fixture
def root(tmp_path):
    """The files of a p4d with one EFA, and of an RDMA device of another driver."""
    write(tmp_path / "sys/class/dmi/id/sys_vendor", "Amazon EC2\n")
    write(tmp_path / "sys/class/dmi/id/product_name", "p4d.24xlarge\n")
    write(tmp_path / "sys/module/efa/version", "2.17.0g\n")
    write(tmp_path / "proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   2048 kB\n")
    write(tmp_path / "proc/net/route", "Iface Destination\nens33 0000A8C0 1\nens32 00000000 0102A8C0\n")
    for name, driver in (("rdmap16s27", "efa"), ("mlx5_0", "mlx5_core")):
        device = tmp_path / "sys/class/infiniband" / name
        write(device / "ports/1/state", "4: ACTIVE\n")
        write(device / "device/device", "0xefa0\n")
        (tmp_path / "drivers" / driver).mkdir(parents=True)
        (device / "device/driver").symlink_to(tmp_path / "drivers" / driver)
    return tmp_path


def test_a_host_is_described_by_its_files(root):
    assert instance.instance_type(root) == {"vendor": "Amazon EC2", "type": "p4d.24xlarge"}
    assert instance.driver_version(root) == "2.17.0g"
    found = [(each["name"], each["id"], each["state"]) for each in instance.devices(root)]
    assert found == [("rdmap16s27", "0xefa0", "ACTIVE")]
    assert instance.available_memory(root) == 2048 * 1024
    assert instance.interface_of_route(root) == "ens32"


def test_a_host_without_such_files_is_described_as_without_them(tmp_path):
    assert instance.instance_type(tmp_path) == {"vendor": "", "type": ""}
    assert instance.driver_version(tmp_path) == ""
    assert instance.devices(tmp_path) == []


@pytest.mark.parametrize(
    ("type_name", "count"), [("p4d.24xlarge", 4), ("p5.48xlarge", 32), ("p5en.48xlarge", 16)]
)
def test_an_instance_must_have_the_devices_of_its_type(type_name, count):
    (row,) = judged.device_rows([host_of(type_name, count)])
    assert (row["verdict"], row["value"]) == ("works", count)
    (row,) = judged.device_rows([host_of(type_name, count - 1)])
    assert row["verdict"] == "wrong"
    assert f"{type_name} has {count} EFAs, but here are {count - 1}" in row["note"]


def test_devices_of_a_type_that_is_not_known_are_only_counted():
    (row,) = judged.device_rows([host_of("c9n.metal", 2)])
    assert (row["verdict"], row["value"]) == ("measured", 2)


def test_a_port_that_is_down_is_named():
    host = host_of("p4d.24xlarge", 4)
    host["devices"][2]["state"] = "DOWN"
    *_, row = judged.device_rows([host])
    assert (row["verdict"], row["note"]) == ("wrong", "not active: rdmap81s0")


def test_a_p4d_has_its_writes_emulated_and_a_p5_may_not():
    def without_writes(type_name, count):
        host = host_of(type_name, count)
        for limit in host["limits"]["devices"].values():
            limit.update(write=False, unsolicited=False)
        return verdicts(judged.limit_rows([host]))

    assert without_writes("p4d.24xlarge", 4) == {
        "RDMA read": "works",
        "RDMA write": "unsupported",
        "largest RDMA": "measured",
        "memory that may be locked": "works",
    }
    assert without_writes("p5.48xlarge", 32)["RDMA write"] == "wrong"
    assert verdicts(judged.limit_rows([host_of("p5.48xlarge", 32)]))["RDMA write"] == "works"


def test_a_limit_on_locked_memory_is_wrong_and_so_are_devices_that_cannot_be_asked():
    host = host_of("p5.48xlarge", 32, memory_locked=8 << 20, limits={"devices": {}, "error": "no libefa"})
    found = verdicts(judged.limit_rows([host]))
    assert found == {"what the devices can do": "failed", "memory that may be locked": "wrong"}


def test_an_old_libfabric_and_hosts_that_differ_are_wrong():
    old = host_of("p5.48xlarge", 32, libfabric={"version": "1.17", "file": "f", "error": ""}, host="b")
    rows = list(judged.machine_rows([host_of("p5.48xlarge", 32), old], "efa"))
    wrong = [row["what"] for row in rows if row["verdict"] == "wrong"]
    assert wrong == ["libfabric", "the same libfabric on all hosts"]


def test_the_attributes_of_a_device_are_those_that_libefa_writes(tmp_path):
    """Stand-ins of both libraries, over the true header, tell of a device that reads and one that writes."""
    if not Path("/usr/include/infiniband/efadv.h").exists() or not shutil.which("cc"):
        pytest.skip("there is no infiniband/efadv.h or no cc: libibverbs-dev has the header")
    source = """
#include <infiniband/efadv.h>
#include <string.h>
#undef ibv_get_device_list
struct ibv_device devices[2];
struct ibv_device *list[3] = {devices, devices + 1, 0};
struct ibv_device **ibv_get_device_list(int *count) { *count = 2; return list; }
const char *ibv_get_device_name(struct ibv_device *device) { return device == devices ? "rdma0" : "rdma1"; }
struct ibv_context *ibv_open_device(struct ibv_device *device) { return (struct ibv_context *)device; }
int ibv_close_device(struct ibv_context *context) { return 0; }
int efadv_query_device(struct ibv_context *context, struct efadv_device_attr *attr, uint32_t size) {
  if (size != sizeof(*attr)) return 22;
  memset(attr, 0, size);
  attr->device_caps = (void *)context == devices ? EFADV_DEVICE_ATTR_CAPS_RDMA_READ : 1 | 8 | 16;
  attr->max_rdma_size = 1 << 30;
  return 0;
}
"""
    write(tmp_path / "stand_in.c", source)
    library = tmp_path / "libefa.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "stand_in.c"], check=True)
    (tmp_path / "libibverbs.so.1").symlink_to(library)
    ask = "import json, device_limits; print(json.dumps(device_limits.limits_of_devices()))"
    environment = dict(os.environ) | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT / "tools/efa")}
    asked = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True)
    read_only = {"read": True, "write": False, "unsolicited": False, "largest": GIB}
    both = {"read": True, "write": True, "unsolicited": True, "largest": GIB}
    assert json.loads(asked.stdout or asked.stderr) == {"rdma0": read_only, "rdma1": both}
    assert device_limits.RDMA_WRITE == 8


def test_without_an_efa_a_sentence_says_what_the_machine_is_and_what_to_do():
    said = judged.without_efa([host_of("p5.48xlarge", 32), host_of("p4d.24xlarge", 0, driver="", host="b")])
    assert said.startswith(
        "b has no EFA: it is p4d.24xlarge, which has 4 of them, the driver efa is not loaded"
    )
    assert "--provider tcp" in said
    assert judged.without_efa([host_of("p5.48xlarge", 32)]) == ""
