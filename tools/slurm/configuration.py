"""The configuration of a Slurm whose hosts are those of a cluster, the same on every host."""

from pathlib import Path

# Every host has a folder of this name, in memory of its own.
FOLDER = Path("/dev/shm/slurm")
CONFIGURATION = FOLDER / "slurm.conf"
SOCKET = FOLDER / "munge.socket"
# For any Slurm of root's on one machine, without a database and control groups; its files lie in {folder}.
ON_ONE_MACHINE = """\
SlurmUser=root
SlurmdUser=root
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
# A node may have more processors than the machine.
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""
_SLURM = """\
ClusterName=cluster
SlurmctldHost=node0
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={socket}
# The ranks of a host meet the PMIx of its slurmd in a folder there, and /tmp is the same on all hosts.
TmpFS=/dev/shm
{nodes}
"""
# Nothing here uses control groups, but slurmd ends where it cannot tell which version of them there is.
_CONTROL_GROUPS = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"


def write(processors: list[int]) -> None:
    """Writes what the daemons of a host read, in its memory; `processors` has the number of each host."""
    for name in ("spool", "state"):
        (FOLDER / name).mkdir(parents=True)
    nodes = "\n".join(f"NodeName=node{host} CPUs={each}" for host, each in enumerate(processors))
    CONFIGURATION.write_text((_SLURM + ON_ONE_MACHINE).format(folder=FOLDER, socket=SOCKET, nodes=nodes))
    (FOLDER / "cgroup.conf").write_text(_CONTROL_GROUPS)
