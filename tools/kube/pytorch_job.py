"""The objects that Training Operator 1.9 makes of a PyTorchJob."""

import pods

KIND = ("kubeflow.org/v1", "PyTorchJob")
_PORT = 23456
_CONTAINER = "pytorch"


class PytorchJob:
    """One PyTorchJob, of which the objects are made."""

    def __init__(self, job: dict) -> None:
        self.job = job
        self._spec = job["spec"]
        self.name = job["metadata"]["name"]
        self.clean_pod_policy = self._spec.get("runPolicy", {}).get("cleanPodPolicy", "None")
        self._replicas = self._spec["pytorchReplicaSpecs"]

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all objects."""
        return {
            "training.kubeflow.org/job-name": self.name,
            "training.kubeflow.org/operator-name": "pytorchjob-controller",
        }

    def first(self) -> list[dict]:
        """All objects: each pod with a service of its name."""
        found = []
        for role, replica in self._replicas.items():
            for number in range(replica.get("replicas", 1)):
                of_pod = self._pod(role, number)
                labels = of_pod["metadata"]["labels"]
                selector = {
                    name: labels[name] for name in labels if name.startswith("training.kubeflow.org/")
                }
                found += [pods.service(self.job, of_pod["metadata"]["name"], selector, selector), of_pod]
        return found

    def _pod(self, role: str, number: int) -> dict:
        replica = self._replicas[role]
        labels = self.labels | {
            "training.kubeflow.org/replica-type": role.lower(),
            "training.kubeflow.org/replica-index": str(number),
        }
        found = pods.pod(self.job, f"{self.name}-{role.lower()}-{number}", replica["template"], labels)
        policy = replica.get("restartPolicy", "Never")
        found["spec"]["restartPolicy"] = "Never" if policy == "ExitCode" else policy
        for container in found["spec"]["containers"]:
            if container["name"] == _CONTAINER:
                pods.add_environment(container, self._environment(role, number))
        return found

    def _environment(self, role: str, number: int) -> dict[str, str]:
        total = sum(replica.get("replicas", 1) for replica in self._replicas.values())
        values = {"PYTHONUNBUFFERED": "1"}
        if "Master" in self._replicas:
            rank = str(number + (role == "Worker"))
            values |= {"MASTER_ADDR": f"{self.name}-master-0", "MASTER_PORT": str(_PORT)}
            values |= {"PET_MASTER_ADDR": f"{self.name}-master-0", "PET_MASTER_PORT": str(_PORT)}
            values |= {"WORLD_SIZE": str(total), "RANK": rank, "PET_NODE_RANK": rank}
        if "nprocPerNode" in self._spec:
            values["PET_NPROC_PER_NODE"] = self._spec["nprocPerNode"]
        elastic = self._spec.get("elasticPolicy")
        return values | (self._elastic(elastic, total) if elastic else {"PET_NNODES": str(total)})

    def _elastic(self, policy: dict, total: int) -> dict[str, str]:
        host, port = policy.get("rdzvHost", f"{self.name}-worker-0"), policy.get("rdzvPort", _PORT)
        bounds = ("minReplicas" in policy) or ("maxReplicas" in policy)
        nodes = (
            f"{policy.get('minReplicas', total)}:{policy.get('maxReplicas', total)}" if bounds else str(total)
        )
        values = {
            "PET_RDZV_ENDPOINT": f"{host}:{port}",
            "PET_RDZV_BACKEND": policy.get("rdzvBackend", "c10d"),
        }
        values["PET_NNODES"] = nodes
        if "maxRestarts" in policy:
            values["PET_MAX_RESTARTS"] = str(policy["maxRestarts"])
        if "rdzvId" in policy:
            values["PET_RDZV_ID"] = policy["rdzvId"]
        if "rdzvConf" in policy:
            values["PET_RDZV_CONF"] = ",".join(
                f"{each['key']}={each['value']}" for each in policy["rdzvConf"]
            )
        return values
