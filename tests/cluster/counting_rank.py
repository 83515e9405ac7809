"""Runs a program as one rank of an MPI job and says how often the system switched from its threads."""

import os
import sys

from fault_rank import say

process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(process, 0)
say({"rank": int(os.environ["OMPI_COMM_WORLD_RANK"]), "switches": used.ru_nvcsw + used.ru_nivcsw})
sys.exit(os.waitstatus_to_exitcode(status) and 1)
