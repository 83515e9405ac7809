// The text of fccl-info --help.
#pragma once

namespace fccl::core {

inline constexpr const char* kUsage =
    R"(fccl-info topology          this host: its NICs, GPUs and where they sit
fccl-info topology FILE     what FILE describes, in FCCL's text form or in NCCL's XML
fccl-info rails FILE        which NICs serve which rank of FILE
fccl-info explain COLLECTIVE SIZE [--topology FILE [--hosts H] | --hosts HxR[xNICS]] [--costs TEXT | --provider NAME]
                            which way a collective of SIZE takes between the hosts of FILE, or between H hosts like the one of
                            FILE, or between H hosts of R ranks and NICS NICs each (1); and how long that should take. SIZE is
                            that of the larger buffer, as for the perf binaries: 8, 64K, 16M, 1G. TEXT is what the parts cost;
                            else FCCL_COSTS is taken, else what the plug-in of FCCL_TRANSPORT_PLUGIN tells, else what is assumed of
                            the provider: efa, verbs or tcp (the default).
fccl-info explain COLLECTIVE SIZE --ranks R [--arena] [--in-place] [--dtype D]
                            which way a collective of SIZE takes among R ranks of one host, with buffers in their arenas, in
                            place, of type D (float32), and which threshold decides; by the settings here
fccl-info top [PID] [--interval SECONDS] [--once]
                            the jobs of this host, or that of process PID: what each rank has done, how fast, which call it waits
                            in, and for whom. A terminal gets a new look every 2 s; --once ends after one. Other outputs get one
                            look, with rates if an interval is given.
fccl-info report            one text to send with a question: versions, settings, topology, limits, and what the jobs of this host
                            do and last failed of. It has no unique id, no key and no value of a variable that FCCL does not read.
fccl-info gpus [--hold]     the GPUs that this process may use and what their driver offers, or why there are none; --hold keeps
                            them open until the input ends, since a driver may shut a GPU down that nobody has open
fccl-info settings          the variables that FCCL reads, and their values here; * marks those that are not the defaults
fccl-info --version         the version

--json behind topology, gpus, settings, or explain between hosts: the answer as JSON
)";

}  // namespace fccl::core
