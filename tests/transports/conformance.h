// The conformance suite: what every transport must do, sentence by sentence of wire/transport.h; a test per sentence.
//
// A test program of a transport links fccl_conformance and says how its transports are opened:
//   INSTANTIATE_TEST_SUITE_P(Mine, Conformance, testing::Values(TransportFactory{"mine", open_mine}), name_of_factory);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "transports/processes.h"
#include "wire/transport.h"

namespace fccl::core {

// How to open transports that reach each other. Its errors are the reasons that a skipped test prints.
struct TransportFactory {
  std::string name;
  std::function<Result<std::vector<std::unique_ptr<Transport>>>(int processes, int rails)> open;
};

inline std::string name_of_factory(const testing::TestParamInfo<TransportFactory>& info) { return info.param.name; }
inline void PrintTo(const TransportFactory& factory, std::ostream* out) { *out << factory.name; }

class Conformance : public testing::TestWithParam<TransportFactory>, protected Processes {
 protected:
  // False, with a reason in why_not, if the transport cannot have so many.
  bool open(int number, int rails = 1, int messages = 64);

  std::string why_not;
};

}  // namespace fccl::core
