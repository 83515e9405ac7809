"""The objects that Kubeflow Trainer 2.3 and JobSet make of a TrainJob."""

import copy

import pods

KIND = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODE = "node"
_LAUNCHER = "launcher"
_PORT = 29500
# The operator sets them, so a job may not.
_RESERVED = {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}


class TrainJob:
    """One TrainJob with the runtime that it names, of which the objects are made."""

    clean_pod_policy = "None"

    def __init__(self, job: dict, runtime: dict) -> None:
        self.job = job
        self.name = job["metadata"]["name"]
        self._trainer = job["spec"].get("trainer", {})
        self._policy = runtime["spec"].get("mlPolicy", {})
        self._mpi = self._policy.get("mpi")
        self._jobs = {each["name"]: each for each in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
        self._nodes = self._trainer.get("numNodes", self._policy.get("numNodes", 1))

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all objects."""
        return {"jobset.sigs.k8s.io/jobset-name": self.name}

    @property
    def needs_ready_workers(self) -> bool:
        """True if the launcher is made when all nodes are ready."""
        return bool(self._jobs.get(_LAUNCHER, {}).get("dependsOn"))

    @property
    def has_launcher(self) -> bool:
        """True if the end of the job is that of its launcher."""
        return _LAUNCHER in self._jobs

    def fault(self) -> str:
        """Why this job is refused; "" if it is not."""
        named = {each["name"] for each in self._trainer.get("env", [])} & _RESERVED
        if self._mpi is None and named:
            return f"spec.trainer.env may not have {', '.join(sorted(named))}, which Trainer sets"
        return ""

    def first(self) -> list[dict]:
        """The objects that need no other ones."""
        found = [pods.service(self.job, self.name, self.labels, self.labels)]
        if self._mpi is not None:
            found += [
                pods.secret(self.job, f"{self.name}-mpi-ssh-auth", {}),
                pods.hostfile(self.job, f"{self.name}-mpi-hostfile", self._hosts(), {}),
            ]
        return found + self.workers()

    def workers(self) -> list[dict]:
        """The pods of the replicated job `node`."""
        return [self._pod(_NODE, number) for number in range(self._nodes_beside_launcher())]

    def launcher(self) -> dict:
        """The Job that runs mpirun."""
        of_job = self._jobs[_LAUNCHER]["template"]["spec"]
        return pods.launcher(self.job, self._pod(_LAUNCHER, 0), of_job.get("backoffLimit", 6))

    def _nodes_beside_launcher(self) -> int:
        launches_as_node = self._mpi is not None and self._mpi.get("runLauncherAsNode", False)
        return max(self._nodes - 1, 1) if launches_as_node else self._nodes

    def _processes(self) -> str:
        default = self._mpi.get("numProcPerNode", 1) if self._mpi is not None else "auto"
        return str(self._trainer.get("numProcPerNode", default))

    def _hosts(self) -> list[str]:
        names = [f"{self.name}-{_NODE}-0-{number}" for number in range(self._nodes_beside_launcher())]
        if self._mpi.get("runLauncherAsNode", False):
            names.insert(0, f"{self.name}-{_LAUNCHER}-0-0")
        return [f"{each}.{self.name} slots={self._processes()}" for each in names]

    def _pod(self, of: str, number: int) -> dict:
        template = self._jobs[of]["template"]
        labels = self.labels | {"jobset.sigs.k8s.io/replicatedjob-name": of}
        name = f"{self.name}-{of}-0-{number}"
        found = pods.pod(self.job, name, template["spec"]["template"], labels)
        spec = found["spec"]
        spec |= {"hostname": name, "subdomain": self.name}
        spec.setdefault("restartPolicy", "Never")
        container = next(each for each in spec["containers"] if each["name"] == _NODE)
        if template.get("metadata", {}).get("labels", {}).get(_ANCESTOR) == "trainer":
            self._override(container)
        if self._mpi is not None:
            self._add_mpi(of, spec, container)
        else:
            pods.add_environment(container, self._torch(number))
        return found

    def _override(self, container: dict) -> None:
        for key in ("image", "command", "args"):
            if key in self._trainer:
                container[key] = copy.deepcopy(self._trainer[key])
        if "resourcesPerNode" in self._trainer:
            container["resources"] = copy.deepcopy(self._trainer["resourcesPerNode"])
        container.setdefault("env", []).extend(copy.deepcopy(self._trainer.get("env", [])))

    def _torch(self, number: int) -> dict[str, str]:
        return {
            "PET_NNODES": str(self._nodes),
            "PET_NPROC_PER_NODE": self._processes(),
            "PET_NODE_RANK": str(number),
            "PET_MASTER_ADDR": f"{self.name}-{_NODE}-0-0.{self.name}",
            "PET_MASTER_PORT": str(_PORT),
        }

    def _add_mpi(self, of: str, spec: dict, container: dict) -> None:
        modes = {"id_rsa": 0o640, "id_rsa.pub": 0o644, "authorized_keys": 0o644}
        keys = {
            "secretName": f"{self.name}-mpi-ssh-auth",
            "defaultMode": 0o400,
            "items": pods.key_items(modes),
        }
        path = self._mpi.get("sshAuthMountPath", "/root/.ssh")
        pods.mount(spec, container, {"name": "mpi-ssh-auth", "secret": keys}, path)
        if of != _LAUNCHER:
            return
        shown = [{"key": pods.HOSTFILE, "path": pods.HOSTFILE, "mode": 0o444}]
        volume = {"name": "mpi-hostfile", "configMap": {"name": f"{self.name}-mpi-hostfile", "items": shown}}
        pods.mount(spec, container, volume, pods.HOSTFILE_FOLDER)
        pods.add_environment(
            container,
            {
                "OMPI_MCA_orte_default_hostfile": f"{pods.HOSTFILE_FOLDER}/{pods.HOSTFILE}",
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_set_default_slots": self._processes(),
                "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
            },
        )
