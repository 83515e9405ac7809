"""Parts of the objects that the operators' stand-ins make of jobs of several kinds."""

import base64
import copy
import subprocess
import tempfile
from pathlib import Path

HOSTFILE = "hostfile"
HOSTFILE_FOLDER = "/etc/mpi"
_KEYS = (("ssh-privatekey", "id_rsa"), ("ssh-publickey", "id_rsa.pub"), ("ssh-publickey", "authorized_keys"))


def metadata(job: dict, name: str, labels: dict[str, str]) -> dict:
    """The metadata of an object which goes when its job goes."""
    owner = {key: job[key] for key in ("apiVersion", "kind")}
    owner |= {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "controller": True}
    namespace = job["metadata"]["namespace"]
    return {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]}


def pod(job: dict, name: str, template: dict, labels: dict[str, str]) -> dict:
    """A pod of a template."""
    of_template = template.get("metadata", {})
    found = metadata(job, name, of_template.get("labels", {}) | labels)
    if "annotations" in of_template:
        found["annotations"] = of_template["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": found, "spec": copy.deepcopy(template["spec"])}


def launcher(job: dict, pod_of_launcher: dict, backoff_limit: int) -> dict:
    """A Job, named as its pod would be."""
    of_pod = pod_of_launcher["metadata"]
    template = {"metadata": {"labels": of_pod["labels"]}, "spec": pod_of_launcher["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(job, of_pod["name"], of_pod["labels"]),
        "spec": {"backoffLimit": backoff_limit, "template": template},
    }


def service(job: dict, name: str, selector: dict[str, str], labels: dict[str, str]) -> dict:
    """A name for pods, without an address of its own, known before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, name, labels),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector},
    }


def hostfile(job: dict, name: str, hosts: list[str], labels: dict[str, str]) -> dict:
    """The configuration map with mpirun's hosts, a line each."""
    data = {HOSTFILE: "".join(f"{host}\n" for host in hosts)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(job, name, labels), "data": data}


def secret(job: dict, name: str, labels: dict[str, str]) -> dict:
    """A new pair of keys for ssh."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-f", str(key)],
            check=True,
            stdin=subprocess.DEVNULL,
        )
        data = {
            "ssh-privatekey": base64.b64encode(key.read_bytes()).decode(),
            "ssh-publickey": base64.b64encode(key.with_suffix(".pub").read_bytes()).decode(),
        }
    found = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/ssh-auth", "data": data}
    return found | {"metadata": metadata(job, name, labels)}


def add_environment(container: dict, values: dict[str, str]) -> None:
    """Puts variables behind those that a container has, in the place of those of their names."""
    kept = [each for each in container.get("env", []) if each["name"] not in values]
    container["env"] = kept + [{"name": name, "value": value} for name, value in values.items()]


def mount(spec: dict, container: dict, volume: dict, path: str) -> None:
    """Adds a volume to a pod, mounted in one container."""
    spec.setdefault("volumes", []).append(volume)
    container.setdefault("volumeMounts", []).append({"name": volume["name"], "mountPath": path})


def key_items(modes: dict[str, int]) -> list[dict]:
    """The keys of a secret as ssh's files; `modes` of those that have one of their own."""
    return [
        {"key": key, "path": path} | ({"mode": modes[path]} if path in modes else {}) for key, path in _KEYS
    ]


def is_ready(found: dict) -> bool:
    """True of a pod whose containers all answer."""
    conditions = found["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def end_of_job(found: dict | None) -> bool | None:
    """True if a Job has ended well; None if it has not ended, or is not there."""
    for each in (found or {}).get("status", {}).get("conditions", []):
        if each["type"] in ("Complete", "Failed") and each["status"] == "True":
            return each["type"] == "Complete"
    return None
