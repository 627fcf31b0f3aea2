#include "fleetx/comm/authenticate.h"

#include "fleetx/base/error.h"

namespace fleetx::comm {

using wire::Kind;
using wire::Message;

Message Challenge::message() const { return {.kind = Kind::kChallenge, .value = nonce_}; }

Message Challenge::check(const Message& m, std::string_view secret,
                         std::string_view context) const {
  check_file(m.kind == Kind::kProof && m.value.size() == wire::kNonceBytes + wire::kProofBytes,
             "expected authentication with the job's secret");
  const std::string_view nonce = std::string_view(m.value).substr(0, wire::kNonceBytes);
  const std::string_view proof = std::string_view(m.value).substr(wire::kNonceBytes);
  check_file(wire::same_proof(proof, wire::prove(secret, "client", nonce_, nonce, context)),
             "wrong secret for this job");
  return {.kind = Kind::kWelcome, .value = wire::prove(secret, "server", nonce, nonce_, context)};
}

void authenticate(Message hello, std::string_view secret,
                  const std::function<std::string()>& context_of,
                  const std::function<void(const Message&)>& send,
                  const std::function<Message()>& receive) {
  const Message challenge = receive();
  check_file(challenge.kind == Kind::kChallenge && challenge.value.size() == wire::kNonceBytes,
             "the other side does not ask for the job's secret");
  const std::string context = context_of(), nonce = wire::random_bytes(wire::kNonceBytes);
  hello.kind = Kind::kProof;
  hello.value = nonce + wire::prove(secret, "client", challenge.value, nonce, context);
  send(hello);
  const Message welcome = receive();
  check_file(welcome.kind == Kind::kWelcome &&
                 wire::same_proof(welcome.value,
                                  wire::prove(secret, "server", nonce, challenge.value, context)),
             "the other side does not know the job's secret");
}

}  // namespace fleetx::comm
