// The wire format of the rendezvous store: frames of a 32-bit length and one message. All messages
// have the same fields; unused ones are empty. The input of the parser is untrusted: anyone who can
// reach the port may send it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::comm::wire {

inline constexpr size_t kMaxBytes = size_t{16} << 20;  // of a frame
inline constexpr size_t kMaxBytesBeforeProof = 512;
inline constexpr size_t kMaxKeyBytes = 1024;

enum class Kind : uint8_t {
  kChallenge = 1,  // server: value = its nonce
  kProof,          // client: value = nonce + HMAC, key = host, number = rank, count = pid
  kWelcome,        // server: value = HMAC, which authenticates the server
  kSet,            // key, value
  kGet,            // key; answered when there is a value
  kAdd,            // key, number; answered with the sum
  kGather,   // key, number = index, count = how many take part, value; answered to all at once
  kCancel,   // number = id of the cancelled request
  kAbort,    // number = rank, count = pid, key = host, value = what happened
  kSuspect,  // the same, for a rank that does not answer
  kLeave,    // the end of the connection will not be a failure
  kReply,    // id of the request; number, value
  kRefused,  // id of the request; value = why
  kFailure,  // to all clients: as kAbort
  kEnded,    // as kAbort, for a rank with exit code 0: a failure if it never connected
};
inline constexpr Kind kLastKind = Kind::kEnded;

struct Message {
  Kind kind = Kind::kReply;
  uint32_t id = 0;
  int64_t number = 0, count = 0;
  std::string key{}, value{};
  bool operator==(const Message&) const = default;
};

std::string encode(const Message& message);  // with the length in front

// Splits the bytes of a connection into messages. An invalid frame is kCorrupt.
class Reader {
 public:
  explicit Reader(size_t max_bytes = kMaxBytesBeforeProof) : max_bytes_(max_bytes) {}
  void set_max_bytes(size_t bytes) { max_bytes_ = bytes; }

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  std::optional<Message> next();
  // How many bytes the next message needs at least, at most what is allowed.
  size_t missing() const;

 private:
  size_t max_bytes_, begin_ = 0;
  std::string buffer_;
};

std::string pack(const std::vector<std::string>& parts);
std::vector<std::string> unpack(std::string_view text);

inline constexpr size_t kNonceBytes = 32, kProofBytes = 32;
std::string random_bytes(size_t count);
// HMAC-SHA256. `who` ("client" or "server") prevents reflection attacks.
std::string prove(std::string_view secret, std::string_view who, std::string_view their_nonce,
                  std::string_view own_nonce, std::string_view job);
bool same_proof(std::string_view a, std::string_view b);  // constant time

}  // namespace fleetx::comm::wire
