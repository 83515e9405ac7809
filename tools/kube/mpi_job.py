"""The objects that MPI operator 0.8 makes of an MPIJob."""

import copy

import pods

KIND = ("kubeflow.org/v2beta1", "MPIJob")
_ARGUMENTS = "-o ConnectionAttempts=10"
_ENVIRONMENTS = {
    "OpenMPI": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": f"{pods.HOSTFILE_FOLDER}/{pods.HOSTFILE}",
        "OMPI_MCA_plm_rsh_args": _ARGUMENTS,
        "OMPI_MCA_orte_set_default_slots": "{slots}",
    },
    "Intel": {
        "I_MPI_HYDRA_HOST_FILE": f"{pods.HOSTFILE_FOLDER}/{pods.HOSTFILE}",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _ARGUMENTS,
        "I_MPI_PERHOST": "{slots}",
    },
    "MPICH": {
        "HYDRA_HOST_FILE": f"{pods.HOSTFILE_FOLDER}/{pods.HOSTFILE}",
        "HYDRA_LAUNCH_EXTRA_ARGS": _ARGUMENTS,
    },
}
_NO_GPUS = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
_ROOTS_FOLDER = "/root/.ssh"
_OWNERS_ONLY = 0o600


class MpiJob:
    """One MPIJob, of which the objects are made."""

    def __init__(self, job: dict) -> None:
        self.job = job
        self._spec = job["spec"]
        self.name = job["metadata"]["name"]
        self.clean_pod_policy = self._spec.get("runPolicy", {}).get("cleanPodPolicy", "None")
        self._slots = self._spec.get("slotsPerWorker", 1)
        self._mpi = self._spec.get("mpiImplementation", "OpenMPI")
        self._launches_as_worker = self._spec.get("runLauncherAsWorker", False)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all objects."""
        return {
            "training.kubeflow.org/job-name": self.name,
            "training.kubeflow.org/operator-name": "mpi-operator",
        }

    @property
    def needs_ready_workers(self) -> bool:
        """True if the launcher is made when all workers are ready."""
        return self._spec.get("launcherCreationPolicy") == "WaitForWorkersReady"

    @property
    def _workers(self) -> dict:
        return self._spec["mpiReplicaSpecs"].get("Worker", {"replicas": 0})

    def first(self) -> list[dict]:
        """The objects that need no other ones."""
        return [
            pods.service(self.job, self.name, self.labels, self.labels),
            pods.hostfile(self.job, f"{self.name}-config", self._hosts(), {"app": self.name}),
            pods.secret(self.job, f"{self.name}-ssh", {"app": self.name}),
            *self.workers(),
        ]

    def _hosts(self) -> list[str]:
        names = [f"{self.name}-worker-{number}" for number in range(self._workers.get("replicas", 1))]
        if self._launches_as_worker:
            names.insert(0, f"{self.name}-launcher")
        space = self.job["metadata"]["namespace"]
        mark = " slots=" if self._mpi == "OpenMPI" else ":"
        return [f"{each}.{self.name}.{space}.svc{mark}{self._slots}" for each in names]

    def workers(self) -> list[dict]:
        """The pods that wait for ssh."""
        return [self._worker(number) for number in range(self._workers.get("replicas", 1))]

    def _worker(self, number: int) -> dict:
        labels = self.labels | {
            "training.kubeflow.org/job-role": "worker",
            "training.kubeflow.org/replica-index": str(number + self._launches_as_worker),
        }
        found = pods.pod(self.job, f"{self.name}-worker-{number}", self._workers["template"], labels)
        container = found["spec"]["containers"][0]
        if not container.get("command") and not container.get("args"):
            container["command"] = ["/usr/sbin/sshd", "-De"]
        pods.add_environment(container, {"K_MPI_JOB_ROLE": "worker"})
        search = f"{self.name}.{self.job['metadata']['namespace']}.svc.cluster.local"
        found["spec"].setdefault("dnsConfig", {}).setdefault("searches", []).append(search)
        self._complete(found, self._workers)
        return found

    def launcher(self) -> dict:
        """The Job that runs mpirun."""
        replica = self._spec["mpiReplicaSpecs"]["Launcher"]
        labels = self.labels | {"training.kubeflow.org/job-role": "launcher"}
        found = pods.pod(self.job, f"{self.name}-launcher", replica["template"], labels)
        container = found["spec"]["containers"][0]
        values = {name: value.format(slots=self._slots) for name, value in _ENVIRONMENTS[self._mpi].items()}
        hidden = {} if self._launches_as_worker else _NO_GPUS
        pods.add_environment(container, {"K_MPI_JOB_ROLE": "launcher"} | values | hidden)
        self._complete(found, replica)
        shown = [{"key": pods.HOSTFILE, "path": pods.HOSTFILE, "mode": 0o444}]
        volume = {"name": "mpi-job-config", "configMap": {"name": f"{self.name}-config", "items": shown}}
        pods.mount(found["spec"], container, volume, pods.HOSTFILE_FOLDER)
        return pods.launcher(self.job, found, self._spec.get("runPolicy", {}).get("backoffLimit", 6))

    def _complete(self, found: dict, replica: dict) -> None:
        spec = found["spec"]
        spec |= {"hostname": found["metadata"]["name"], "subdomain": self.name}
        policy = replica.get("restartPolicy", "Never")
        spec["restartPolicy"] = "Never" if policy == "ExitCode" else policy
        path = self._spec.get("sshAuthMountPath", _ROOTS_FOLDER)
        of_secret = {"secretName": f"{self.name}-ssh", "items": copy.deepcopy(pods.key_items({}))}
        if path == _ROOTS_FOLDER:
            of_secret["defaultMode"] = _OWNERS_ONLY
        pods.mount(spec, spec["containers"][0], {"name": "ssh-auth", "secret": of_secret}, path)
