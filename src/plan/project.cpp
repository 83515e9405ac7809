// Compiles the projections of all algorithms, once.
#include "plan/project.h"

#include "plan/catalog.h"

namespace fccl::core::plan {

Steps steps_of(int algorithm, Group group, int member) {
  Project sink(group, member);
  kCatalog<Project>[static_cast<size_t>(algorithm)].tell(group, sink);
  return sink.take();
}

}  // namespace fccl::core::plan
