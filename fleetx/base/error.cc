#include "fleetx/base/error.h"

namespace fleetx {

std::string_view to_string(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::kInvalidArgument: return "invalid argument";
    case Error::Kind::kUnsupported: return "unsupported";
    case Error::Kind::kComm: return "communication";
    case Error::Kind::kTimeout: return "timeout";
    case Error::Kind::kCorrupt: return "corrupt file";
    case Error::Kind::kInternal: return "internal";
  }
  return "unknown";
}

void fail(Error::Kind kind, const std::string& message) { throw Error(kind, message); }

void detail::fail_internal(std::string_view condition, const std::string& message,
                           std::source_location where) {
  throw Error(Error::Kind::kInternal,
              str(where.file_name(), ":", where.line(), ": internal check failed: ", condition,
                  message.empty() ? "" : ": ", message));
}

}  // namespace fleetx
