// TLS for connections between ranks, with certificates on both sides. On when the user names them:
// FLEETX_TLS_CERT and FLEETX_TLS_KEY (of this host) and FLEETX_TLS_CA (who signed those of all
// hosts), files in PEM format. Between workers and parameter servers it is the same.
#pragma once

#include "fleetx/comm/tcp_channel.h"

namespace fleetx::comm {

// What an error about TLS ends with.
inline constexpr std::string_view kCompareTls =
    "; compare FLEETX_TLS_CERT, FLEETX_TLS_KEY and FLEETX_TLS_CA on both sides";

class TlsContext {
 public:
  virtual ~TlsContext() = default;
  virtual std::unique_ptr<Channel> over(Fd socket, bool is_server) const = 0;

  static std::shared_ptr<const TlsContext> from_files(const std::string& certificate,
                                                      const std::string& key,
                                                      const std::string& authority);
  // Null: the variables are not set.
  static std::shared_ptr<const TlsContext> from_environment();
};

}  // namespace fleetx::comm
