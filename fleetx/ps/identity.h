// Who is who when a connection proves the job's secret: ranks of comm/tcp_acceptor.h.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "fleetx/comm/tcp_acceptor.h"

namespace fleetx::ps {

inline constexpr int kServerRank = 0, kObserverRank = 1, kFirstWorkerRank = 2;

// Tells a process from the one that had its place before; never 0.
inline uint64_t random_number() {
  std::random_device source;
  return (uint64_t{source()} << 32 | source()) | 1;
}

inline comm::TcpIdentity identity_of(const std::string& secret, const std::string& job_id) {
  return {.secret = secret,
          .job = "parameter server of " + job_id,
          .tls = comm::TlsContext::from_environment()};
}

}  // namespace fleetx::ps
