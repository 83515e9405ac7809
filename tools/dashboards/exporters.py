"""Pages of other exporters, as stand-ins: DCGM's for eight GPUs and node_exporter's for four EFA devices."""

import math
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GPUS = 8
DEVICES = 4
# Fields by their names in DCGM's exporter, each as a function of a GPU's utilization in percent.
DCGM_FIELDS: dict[str, Callable[[float], float]] = {
    "DCGM_FI_DEV_SM_CLOCK": lambda used: 210 + 12 * used,
    "DCGM_FI_DEV_GPU_TEMP": lambda used: 30 + 0.4 * used,
    "DCGM_FI_DEV_POWER_USAGE": lambda used: 60 + 3.4 * used,
    "DCGM_FI_DEV_GPU_UTIL": lambda used: used,
    "DCGM_FI_DEV_MEM_COPY_UTIL": lambda used: 0.6 * used,
    "DCGM_FI_DEV_XID_ERRORS": lambda _: 0,
}
# The counters of a port that the collector amazonefa of AWS's node_exporter reads.
EFA_COUNTERS = [
    "alloc_pd_err",
    "alloc_ucontext_err",
    "cmds_err",
    "completed_cmds",
    "create_ah_err",
    "create_cq_err",
    "create_qp_err",
    "keep_alive_rcvd",
    "lifespan",
    "mmap_err",
    "no_completion_cmds",
    "rdma_read_bytes",
    "rdma_read_resp_bytes",
    "rdma_read_wr_err",
    "rdma_read_wrs",
    "rdma_write_bytes",
    "rdma_write_recv_bytes",
    "rdma_write_wr_err",
    "rdma_write_wrs",
    "recv_bytes",
    "recv_wrs",
    "reg_mr_err",
    "rx_bytes",
    "rx_drops",
    "rx_pkts",
    "send_bytes",
    "send_wrs",
    "submitted_cmds",
    "tx_bytes",
    "tx_pkts",
]


def page_of_dcgm(now: float) -> str:
    """GPUs whose load rises and falls."""
    lines = []
    for field, value in DCGM_FIELDS.items():
        lines += [f"# HELP {field} {field}", f"# TYPE {field} gauge"]
        for gpu in range(GPUS):
            used = 50 + 50 * math.sin(now / 10 + gpu)
            labels = (
                f'gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",modelName="stand-in",Hostname="node0"'
            )
            lines.append(f"{field}{{{labels}}} {value(used):.3f}")
    return "\n".join(lines) + "\n"


def page_of_efa(now: float) -> str:
    """Devices that carry ever more."""
    lines = []
    for counter in EFA_COUNTERS:
        name = f"node_amazonefa_{counter}"
        lines += [f"# HELP {name} {counter}", f"# TYPE {name} counter"]
        rate = 0 if counter.endswith(("_err", "_drops")) else 1e9 if counter.endswith("_bytes") else 1e5
        lines += [
            f'{name}{{device="rdmap{device}s0",port="1"}} {int(now * rate * (1 + device / 10))}'
            for device in range(DEVICES)
        ]
    return "\n".join(lines) + "\n"


def serve(page: Callable[[float], str]) -> int:
    """Serves a page on a port of this host, which it returns, as long as the process lives."""
    began = time.monotonic()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page(time.monotonic() - began).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
