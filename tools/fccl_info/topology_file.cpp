// Reads a whole file, and tells its form by its first characters.
#include "fccl_info/topology_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "topology/nccl_xml.h"
#include "topology/text.h"

namespace fccl::core {
namespace {

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  std::string text;
  if (file)
    for (int c; (c = std::fgetc(file.get())) != EOF;) text += static_cast<char>(c);
  if (!file || std::ferror(file.get()) != 0)
    return fail(fcclSystemError, fmt::format("cannot read the topology in {}: {}", path, std::strerror(errno)));
  return text;
}

}  // namespace

Result<Topology> read_topology(const std::string& path) {
  FCCL_TRY_ASSIGN(const std::string text, read_file(path));
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_xml = begin != std::string::npos && text[begin] == '<';
  Result<Topology> topology = is_xml ? parse_nccl_xml(text) : parse_topology(text);
  if (!topology) return fail(topology.error().code, fmt::format("{}: {}", path, topology.error().message));
  return topology;
}

}  // namespace fccl::core
