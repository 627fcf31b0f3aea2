// How the two sides of a connection prove that they know the job's secret, without sending it: each
// answers the other's random challenge by HMAC-SHA256. Used by the store and between ranks.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fleetx/comm/store_wire.h"

namespace fleetx::comm {

// The side that was connected to. `context` is what both sides must agree on besides the secret.
class Challenge {
 public:
  wire::Message message() const;
  // The answer to a valid proof; an invalid one is kCorrupt.
  wire::Message check(const wire::Message& proof, std::string_view secret,
                      std::string_view context) const;

 private:
  std::string nonce_ = wire::random_bytes(wire::kNonceBytes);
};

// The side that connects; `hello` says who it is. The functions move a message and may block; the
// context is asked for after the first message has come.
void authenticate(wire::Message hello, std::string_view secret,
                  const std::function<std::string()>& context_of,
                  const std::function<void(const wire::Message&)>& send,
                  const std::function<wire::Message()>& receive);

}  // namespace fleetx::comm
