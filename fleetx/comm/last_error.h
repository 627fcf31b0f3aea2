// What the last system call said.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace fleetx::comm {

inline std::string reason() { return std::strerror(errno); }

// Not an error of a non-blocking socket: to be tried again.
inline bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace fleetx::comm
