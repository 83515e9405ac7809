// json_text: an answer of fccl-info as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fccl::core {

// Keeps the order in which members were added.
using Json = nlohmann::ordered_json;

// Returns the value in lines, ended by one. Bytes that are no UTF-8, which the name of a file may have, are replaced.
inline std::string json_text(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace fccl::core
