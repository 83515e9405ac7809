#!/usr/bin/env python3
"""Stand-ins for the operators of MPIJob, PyTorchJob and TrainJob: operators.py KUBECONFIG.

They make the objects that the operators make, and say how a job ended.
They mend nothing: a pod that is deleted stays away.
"""

import sys
import time
from pathlib import Path

import mpi_job
import pods
import pytorch_job
import train_job
from api import Api, path_of, plural
from mpi_job import MpiJob
from pytorch_job import PytorchJob
from train_job import TrainJob

_PAUSE = 0.3
_KINDS = (mpi_job.KIND, pytorch_job.KIND, train_job.KIND)
AnyJob = MpiJob | PytorchJob | TrainJob


class Operators:
    """The stand-ins, with the ids of the jobs for which they have made something."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._begun: set[str] = set()
        self._launched: set[str] = set()

    def step(self) -> None:
        """Looks at every job once."""
        for version, kind in _KINDS:
            for job in self._api.items(f"/apis/{version}/{plural(kind)}"):
                job |= {"apiVersion": version, "kind": kind}
                if not job.get("status", {}).get("conditions") and not is_suspended(job):
                    self._see_to(job)

    def _see_to(self, job: dict) -> None:
        made = self._read(job)
        if made is None:
            return
        uid = job["metadata"]["uid"]
        if uid not in self._begun:
            made_all = [self._make(document) for document in made.first()]
            if not all(made_all):
                return
            self._begun.add(uid)
        if isinstance(made, PytorchJob) or (isinstance(made, TrainJob) and not made.has_launcher):
            self._end(made, end_of_pods(self._pods(made)))
            return
        if uid not in self._launched:
            ready = {pod["metadata"]["name"] for pod in self._pods(made) if pods.is_ready(pod)}
            if (
                made.needs_ready_workers
                and not {each["metadata"]["name"] for each in made.workers()} <= ready
            ):
                return
            if not self._make(made.launcher()):
                return
            self._launched.add(uid)
        launcher = made.launcher()
        path = f"{path_of(launcher)}/{launcher['metadata']['name']}"
        self._end(made, pods.end_of_job(self._api.find(path)))

    def _make(self, document: dict) -> bool:
        """False if a former job of this kind and name has left such an object, which will go."""
        if self._api.create(document):
            return True
        found = self._api.find(f"{path_of(document)}/{document['metadata']['name']}")
        owner = document["metadata"]["ownerReferences"][0]
        owners = (found or {}).get("metadata", {}).get("ownerReferences", [])
        # A job of another kind may have a service of this name, which serves this one, too.
        return bool(owners) and all(
            each["uid"] == owner["uid"] or each["kind"] != owner["kind"] for each in owners
        )

    def _read(self, job: dict) -> AnyJob | None:
        """The job, unless it cannot be made yet or is refused."""
        match job["kind"]:
            case "MPIJob":
                return MpiJob(job)
            case "PyTorchJob":
                return PytorchJob(job)
        name = job["spec"]["runtimeRef"]["name"]
        runtime = self._api.find(f"/apis/{job['apiVersion']}/clustertrainingruntimes/{name}")
        if runtime is None:
            self._say(job, "Failed", f"there is no ClusterTrainingRuntime {name}")
            return None
        made = TrainJob(job, runtime)
        if fault := made.fault():
            self._say(job, "Failed", fault)
            return None
        return made

    def _pods(self, made: AnyJob) -> list[dict]:
        selector = ",".join(f"{name}={value}" for name, value in made.labels.items())
        selector = selector.replace("/", "%2F").replace("=", "%3D").replace(",", "%2C")
        namespace = made.job["metadata"]["namespace"]
        return self._api.items(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")

    def _end(self, made: AnyJob, well: bool | None) -> None:
        if well is None:
            return
        self._say(made.job, "Succeeded" if well else "Failed", "its pods have ended")
        keeping = {
            "None": (),
            "Running": ("Running", "Pending"),
            "All": ("Running", "Pending", "Succeeded", "Failed"),
        }
        for pod in self._pods(made):
            if pod["status"]["phase"] in keeping[made.clean_pod_policy]:
                self._api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})

    def _say(self, job: dict, how: str, message: str) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        # Trainer calls a good end Complete. It has both words here, so that one waits for every kind.
        words = [how] if job["kind"] != "TrainJob" or how == "Failed" else ["Complete", how]
        conditions = [
            {"type": word, "status": "True", "reason": f"{job['kind']}{how}"}
            | {"message": message, "lastTransitionTime": now}
            for word in words
        ]
        self._api.set_status(job, {"conditions": conditions})


def is_suspended(job: dict) -> bool:
    """True of a job that is to wait."""
    spec = job["spec"]
    return spec.get("suspend", False) or spec.get("runPolicy", {}).get("suspend", False)


def end_of_pods(found: list[dict]) -> bool | None:
    """True if a job whose end is that of its pods has ended well; None if it has not ended."""
    phases = [pod["status"]["phase"] for pod in found]
    if "Failed" in phases:
        return False
    return True if phases and set(phases) == {"Succeeded"} else None


def main(words: list[str]) -> int:
    """Runs until it is killed."""
    operators = Operators(Api(Path(words[0])))
    while True:
        try:
            operators.step()
        except OSError as error:
            print(f"operators: {error}", file=sys.stderr, flush=True)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
