// Multiplies -d by -o and leaves out meaningless pairs.
#include "cases.h"

#include "library.h"

namespace fccl::perf {

Cases cases_of(const Arguments& arguments, const Collective& collective, const FcclLauncher* peer) {
  Cases cases;
  for (const ElementType& type : element_types()) {
    if (arguments.type != "all" && arguments.type != type.name) continue;
    for (const Operator& op : operators()) {
      const bool first = &op == operators().data();
      if (collective.reduces ? arguments.op != "all" && arguments.op != op.name : !first) continue;
      if (collective.reduces && arguments.op == "all" && !applies(op, type)) continue;
      const bool has =
          arguments.measures_limit ? limit_has(collective, type, op) : !peer || mpi_has(*peer, collective, type, op);
      if (!has) {
        cases.left_out.push_back(collective.reduces ? std::string(op.name) + " of " + std::string(type.name)
                                                    : std::string(type.name));
        continue;
      }
      cases.chosen.push_back({&type, &op});
    }
  }
  return cases;
}

}  // namespace fccl::perf
