"""Asks an EFA's own library whether the device reads and writes the memory of peers, and how much at once."""

from __future__ import annotations

import ctypes

RDMA_READ, RDMA_WRITE, UNSOLICITED_WRITES = 1 << 0, 1 << 3, 1 << 4
PLACES = ("/opt/amazon/efa/lib64/", "/opt/amazon/efa/lib/", "")


class DeviceAttributes(ctypes.Structure):
    """The struct efadv_device_attr of infiniband/efadv.h."""

    _fields_ = (
        ("comp_mask", ctypes.c_uint64),
        ("max_sq_wr", ctypes.c_uint32),
        ("max_rq_wr", ctypes.c_uint32),
        ("max_sq_sge", ctypes.c_uint16),
        ("max_rq_sge", ctypes.c_uint16),
        ("inline_buf_size", ctypes.c_uint16),
        ("reserved", ctypes.c_uint8 * 2),
        ("device_caps", ctypes.c_uint32),
        ("max_rdma_size", ctypes.c_uint32),
    )


def load(name: str) -> ctypes.CDLL:
    """A library of the EFA installer, or of the machine; OSError where there is neither."""
    for place in PLACES[:-1]:
        try:
            return ctypes.CDLL(place + name, ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    return ctypes.CDLL(name, ctypes.RTLD_GLOBAL)


def limits_of_devices() -> dict[str, dict]:
    """By the name of each RDMA device that an EFA's library knows; OSError if the libraries are not there."""
    verbs, efa = load("libibverbs.so.1"), load("libefa.so.1")
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    verbs.ibv_open_device.restype = ctypes.c_void_p
    verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
    verbs.ibv_close_device.argtypes = [ctypes.c_void_p]
    efa.efadv_query_device.argtypes = [ctypes.c_void_p, ctypes.POINTER(DeviceAttributes), ctypes.c_uint32]
    count = ctypes.c_int(0)
    listed = verbs.ibv_get_device_list(ctypes.byref(count))
    found = {}
    for number in range(count.value):
        name = verbs.ibv_get_device_name(listed[number]).decode()
        context = verbs.ibv_open_device(listed[number])
        if context:
            attributes = DeviceAttributes()
            status = efa.efadv_query_device(context, ctypes.byref(attributes), ctypes.sizeof(attributes))
            verbs.ibv_close_device(context)
            if status == 0:
                found[name] = limits_in(attributes)
    return found


def limits_in(attributes: DeviceAttributes) -> dict:
    """Returns the attributes that the step limits reads."""
    return {
        "read": bool(attributes.device_caps & RDMA_READ),
        "write": bool(attributes.device_caps & RDMA_WRITE),
        "unsolicited": bool(attributes.device_caps & UNSOLICITED_WRITES),
        "largest": attributes.max_rdma_size,
    }
