// Fuzzes the readers of topologies: FCCL's text form and NCCL's XML.
#include "fuzz/fuzz.h"
#include "topology/nccl_xml.h"
#include "topology/rails.h"
#include "topology/text.h"

namespace fccl::core::fuzz {

std::vector<std::string> seeds() {
  return {
      "fccl topology 1\nhost a\n  nic eth0 speed 2.5Gbit/s\n  nic e1 speed 100Gbit/s pci 0000:4f:00.0 numa 0 under "
      "0000:00:01.0\n"
      "  gpu 0 pci 0000:53:00.0 numa 0 under 0000:00:01.0/0000:4d:00.0\n  rank 0 gpu 0\n  rank 2 numa 1\nhost b\n  nic eth0\n  "
      "rank 1\n",
      "# comment\nfccl topology 1\nhost a\n  rank 0\nhost b\n  nic x\n  nic y\n  rank 1\n  rank 2\n",
      R"(<system version="1"><cpu numaid="0" host_hash="0x1"><pci busid="0000:45:00.0" class="0x060400">)"
      R"(<pci busid="0000:52:00.0" class="0x020000"><nic><net name="rdmap82s0" speed="400000" port="1"/></nic></pci>)"
      R"(<pci busid="0000:53:00.0" class="0x030200"><gpu dev="0" rank="0"/></pci></pci>)"
      R"(<nic><net name="eth0" speed="10000" port="0"/><net name="eth0" port="2"/></nic></cpu></system>)",
      R"(<system><cpu numaid="-1"><pci busid="ffff:ff:01.0" class="0x060400"><pci busid="0000:10:1c.0" class="0x030200"/>)"
      R"(<pci busid="0000:10:1b.0" class="0x020000"/></pci></cpu></system>)",
  };
}

namespace {

void use(const Topology& topology) {
  const Result<Topology> again = parse_topology(to_text(topology));
  check(again && *again == topology, "a topology comes back from its text");
  const Rails rails(topology);
  const size_t hosts = topology.hosts().size();
  for (int rank = 1; rank < topology.ranks(); ++rank) {
    if (hosts < 2 || topology.host_of(rank) == topology.host_of(0)) continue;
    const size_t least = std::min(rails.nics_of(0).size(), rails.nics_of(rank).size());
    check(rails.between(0, rank).size() == least && rails.between(rank, 0).size() == least, "ranks agree on their rails");
  }
}

}  // namespace
}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fccl::core;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Result<Topology>& topology : {parse_topology(text), parse_nccl_xml(text)}) {
    if (topology) fuzz::use(*topology);
    check(topology || !topology.error().message.empty(), "a refusal says why");
  }
  return 0;
}
