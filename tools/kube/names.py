#!/usr/bin/env python3
"""Answers for the names of services and pods, by dnsmasq: names.py FOLDER KUBECONFIG."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import configuration
from api import Api

_PAUSE = 0.2


def lines(pods: list[dict], services: list[dict]) -> list[str]:
    """One "ADDRESS NAME" for each name that Kubernetes promises, as /etc/hosts has it."""
    found = []
    living = [
        pod for pod in pods if pod["status"].get("podIP") and not pod["metadata"].get("deletionTimestamp")
    ]
    for service in services:
        name, space = service["metadata"]["name"], service["metadata"]["namespace"]
        address, selector = service["spec"].get("clusterIP"), service["spec"].get("selector")
        if address and address != "None":
            found.append(_line(address, name, space))
        elif selector:
            found += [
                _line(pod["status"]["podIP"], name, space) for pod in living if _has(pod, space, selector)
            ]
    for pod in living:
        spec, space = pod["spec"], pod["metadata"]["namespace"]
        if spec.get("hostname") and spec.get("subdomain"):
            found.append(_line(pod["status"]["podIP"], f"{spec['hostname']}.{spec['subdomain']}", space))
    return sorted(found)


def _line(address: str, name: str, namespace: str) -> str:
    return f"{address} {name}.{namespace}.svc.{configuration.DOMAIN}"


def _has(pod: dict, namespace: str, selector: dict[str, str]) -> bool:
    labels = pod["metadata"].get("labels", {})
    return pod["metadata"]["namespace"] == namespace and selector.items() <= labels.items()


def main(words: list[str]) -> int:
    """Runs until it is killed."""
    hosts = Path(words[0]) / "hosts.of.pods"
    hosts.write_text("")
    words_of_dnsmasq = [
        *["dnsmasq", "--keep-in-foreground", "--no-daemon", "--no-hosts", "--no-resolv", "--no-negcache"],
        *[
            "--user=root",
            f"--listen-address={configuration.ADDRESS}",
            "--bind-interfaces",
            "--conf-file=/dev/null",
        ],
        *[f"--local=/{configuration.DOMAIN}/", f"--addn-hosts={hosts}", "--pid-file"],
    ]
    dnsmasq = subprocess.Popen(words_of_dnsmasq)
    api = Api(Path(words[1]))
    known: list[str] = []
    while dnsmasq.poll() is None:
        try:
            wanted = lines(api.items("/api/v1/pods"), api.items("/api/v1/services"))
        except OSError as error:
            print(f"names: {error}", file=sys.stderr, flush=True)
            wanted = known
        if wanted != known:
            hosts.write_text("".join(f"{line}\n" for line in wanted))
            dnsmasq.send_signal(signal.SIGHUP)
            known = wanted
        time.sleep(_PAUSE)
    return dnsmasq.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
