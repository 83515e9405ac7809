"""Places and addresses of the parts of the Kubernetes, and their files."""

import json
from dataclasses import dataclass
from pathlib import Path

NODE = "node0"
ADDRESS = "10.88.0.1"
SERVER = f"https://{ADDRESS}:6443"
PODS = "10.244.0.0/24"
SERVICES = "10.96.0.0/16"
DOMAIN = "cluster.local"
PAUSE = "localhost/pause:1"
# Pods of overlay local mount these from the node.
ENVIRONMENT = "/opt/fccl-env"
RUNS = "/opt/fccl-runs"


@dataclass(frozen=True)
class Places:
    """The folder of one run, which is removed when that ends."""

    root: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def socket(self) -> Path:
        return self.root / "containerd.sock"

    @property
    def certificate(self) -> Path:
        return self.root / "certificates" / "apiserver.crt"


def kubeconfig(places: Places, token: str) -> str:
    """By which everybody here reaches the server."""
    cluster = {"server": SERVER, "certificate-authority": str(places.certificate)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kube", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "kube", "context": {"cluster": "kube", "user": "admin"}}],
            "current-context": "kube",
        }
    )


def containerd(places: Places) -> str:
    """Scores of memory stay as they are: a root without the capability SYS_RESOURCE may not lower one."""
    return f"""\
version = 2
root = "{places.root}/containerd"
state = "{places.root}/containerd.state"
[grpc]
  address = "{places.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{places.root}/cni"
"""


def network(places: Places) -> str:
    """The network of pods."""
    addresses = {"type": "host-local", "dataDir": f"{places.root}/addresses", "ranges": [[{"subnet": PODS}]]}
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": addresses | {"routes": [{"dst": "0.0.0.0/0"}]},
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, {"type": "loopback"}]})


def kubelet(places: Places, group: str) -> str:
    """Pods' control groups lie below a group of this run; no pod is turned out for want of disk."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "clusterDNS": [ADDRESS],
            "clusterDomain": DOMAIN,
            "resolvConf": str(places.root / "resolv.conf"),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{group}",
            "failSwapOn": False,
            "nodeStatusUpdateFrequency": "4s",
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 99,
            "imageGCLowThresholdPercent": 98,
        }
    )
