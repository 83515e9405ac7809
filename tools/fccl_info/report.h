// report: one text to send with a question.
#pragma once

#include <string>

#include "fccl_info/command.h"

namespace fccl::core {

// Never fails: a section that cannot be made says why. It holds no unique id and no key: of the environment only the values of
// settings are in it, and not even that of FCCL_HOST_ID.
Result<std::string> report(Words words, Form form);

}  // namespace fccl::core
