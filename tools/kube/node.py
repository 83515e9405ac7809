"""Runs a Kubernetes of one node, and on it a command: the first process of a PID namespace."""

import os
import secrets
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import configuration
import crds
import machine
from api import Api
from configuration import Places
from daemons import Daemons

_HERE = Path(__file__).resolve().parent
_START_LIMIT = 120.0
_EFA = "vpc.amazonaws.com/efa"
_NODE = f"/api/v1/nodes/{configuration.NODE}"
_ETCD = "http://127.0.0.1:2379"


@dataclass(frozen=True)
class Order:
    """The command, and the node that it wants."""

    command: list[str]
    efas: int
    images: list[Path]
    group: str


class Node:
    """The daemons, in the order in which they need each other."""

    def __init__(self, places: Places, order: Order) -> None:
        self._places = places
        self._order = order
        self._daemons = Daemons(places.logs)
        self._token = secrets.token_hex(16)

    def run(self) -> int:
        """The status of the command, which runs when all is ready."""
        machine.make(self._places)
        self._write_files()
        os.environ["KUBECONFIG"] = str(self._places.kubeconfig)
        self._start_stores()
        self._start_server()
        self._start_controllers()
        api = Api(self._places.kubeconfig)
        self._define(api)
        self._import_images()
        self._daemons.await_until(lambda: _is_ready(api), "the node has not been ready", _START_LIMIT)
        self._offer_efas(api)
        self._await_names(api)
        try:
            command = subprocess.Popen(
                self._order.command, env=os.environ | {"KUBE_LOGS": str(self._places.logs)}
            )
        except OSError as error:
            raise OSError(f"cannot start {self._order.command[0]}: {error.strerror}") from None
        return self._daemons.outlast(command)

    def _write_files(self) -> None:
        root = self._places.root
        for folder in ("cni", "certificates"):
            (root / folder).mkdir()
        (root / "tokens").write_text(f"{self._token},admin,admin,system:masters\n")
        self._places.kubeconfig.write_text(configuration.kubeconfig(self._places, self._token))
        (root / "containerd.toml").write_text(configuration.containerd(self._places))
        (root / "cni" / "pods.conflist").write_text(configuration.network(self._places))
        (root / "kubelet.json").write_text(configuration.kubelet(self._places, self._order.group))
        key = str(root / "accounts.key")
        self._daemons.run("openssl", "genrsa", "-out", key, "2048")
        self._daemons.run("openssl", "rsa", "-in", key, "-pubout", "-out", str(root / "accounts.pub"))

    def _start_stores(self) -> None:
        self._daemons.start("containerd", "-c", f"{self._places.root}/containerd.toml")
        self._daemons.start(
            *["etcd", f"--data-dir={self._places.root}/etcd", f"--listen-client-urls={_ETCD}"],
            *[
                f"--advertise-client-urls={_ETCD}",
                "--listen-peer-urls=http://127.0.0.1:2380",
                "--unsafe-no-fsync",
            ],
        )

    def _start_server(self) -> None:
        root = self._places.root
        self._daemons.start(
            *[
                "kube-apiserver",
                f"--etcd-servers={_ETCD}",
                f"--service-cluster-ip-range={configuration.SERVICES}",
            ],
            *[
                f"--cert-dir={root}/certificates",
                f"--token-auth-file={root}/tokens",
                "--anonymous-auth=false",
            ],
            *["--authorization-mode=AlwaysAllow", "--service-account-issuer=https://local"],
            *[f"--service-account-key-file={root}/accounts.pub"],
            *[f"--service-account-signing-key-file={root}/accounts.key"],
            *["--allow-privileged=true", "--secure-port=6443", f"--bind-address={configuration.ADDRESS}"],
            *[f"--advertise-address={configuration.ADDRESS}", "--disable-admission-plugins=ServiceAccount"],
        )
        self._daemons.await_until(self._serves, "kube-apiserver has not served", _START_LIMIT)

    def _serves(self) -> bool:
        try:
            return Api(self._places.kubeconfig).ask("GET", "/readyz")["text"] == "ok"
        except OSError:
            return False

    def _start_controllers(self) -> None:
        root, named = self._places.root, f"--hostname-override={configuration.NODE}"
        by = f"--kubeconfig={self._places.kubeconfig}"
        alone = ("--leader-elect=false", "--port=0")
        keys = f"--service-account-private-key-file={root}/accounts.key"
        self._daemons.start("kube-controller-manager", by, keys, *alone, "--secure-port=0")
        self._daemons.start("kube-scheduler", by, *alone, "--secure-port=0")
        # Else the answer of a pod to the pod beside it would not come from the service's address.
        self._daemons.start(
            *["kube-proxy", by, named, "--proxy-mode=iptables", f"--cluster-cidr={configuration.PODS}"],
            *["--masquerade-all=true", "--conntrack-max-per-core=0", "--conntrack-min=0"],
            *["--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s"],
        )
        self._daemons.await_until(self._places.socket.exists, "containerd has made no socket", _START_LIMIT)
        self._daemons.start(
            *["kubelet", f"--config={root}/kubelet.json", by, named, f"--node-ip={configuration.ADDRESS}"],
            *[f"--root-dir={root}/kubelet", f"--cert-dir={root}/kubelet/pki", "--container-runtime=remote"],
            *[f"--container-runtime-endpoint=unix://{self._places.socket}"],
            f"--pod-infra-container-image={configuration.PAUSE}",
            # Overlay p4d asks for such a node.
            "--node-labels=node.kubernetes.io/instance-type=p4d.24xlarge",
        )

    def _define(self, api: Api) -> None:
        """The custom resources, and who acts on them."""
        for definition in crds.resolved(api.ask("GET", "/openapi/v2")["definitions"]):
            api.create(definition)
        self._daemons.await_until(
            lambda: _are_served(api), "the custom resources are not served", _START_LIMIT
        )
        kubeconfig = str(self._places.kubeconfig)
        names = str(_HERE / "names.py")
        self._daemons.start(sys.executable, names, str(self._places.root), kubeconfig, name="names")
        self._daemons.start(sys.executable, str(_HERE / "operators.py"), kubeconfig, name="operators")

    def _import_images(self) -> None:
        for image in self._order.images:
            self._daemons.run(
                "ctr",
                f"--address={self._places.socket}",
                "--namespace=k8s.io",
                "images",
                "import",
                str(image),
            )

    def _offer_efas(self, api: Api) -> None:
        if self._order.efas:
            node = api.ask("GET", _NODE)
            api.set_status(node, {"capacity": {_EFA: str(self._order.efas)}})
            self._daemons.await_until(
                lambda: _EFA in api.ask("GET", _NODE)["status"]["allocatable"],
                f"kubelet has not taken {_EFA}",
                _START_LIMIT,
            )

    def _await_names(self, api: Api) -> None:
        """The names of services are known, among which is that of the server."""
        hosts = self._places.root / "hosts.of.pods"
        self._daemons.await_until(
            lambda: (
                "kubernetes.default.svc" in hosts.read_text()
                and api.find("/api/v1/namespaces/default") is not None
            ),
            "names.py knows no service",
            _START_LIMIT,
        )


def _is_ready(api: Api) -> bool:
    node = api.find(_NODE)
    return any(each["type"] == "Ready" and each["status"] == "True" for each in _conditions(node or {}))


def _conditions(document: dict) -> list[dict]:
    """The conditions of an object, which are null while it has none."""
    return document.get("status", {}).get("conditions") or []


def _are_served(api: Api) -> bool:
    found = api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    return all(
        any(each["type"] == "Established" and each["status"] == "True" for each in _conditions(one))
        for one in found
    )


def be(places: Places, order: Order) -> int:
    """The exit status of the first process, whose end is that of all others."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    # They are the owner's; a handler, unlike SIG_IGN, does not pass to the command.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        return Node(places, order).run()
    except OSError as error:
        print(f"kube: {error}", file=sys.stderr, flush=True)
    except Exception:
        # The process ends without another word.
        traceback.print_exc()
        sys.stderr.flush()
    return 1
