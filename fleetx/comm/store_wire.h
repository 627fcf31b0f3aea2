// What the rendezvous store and its clients say to each other: frames of a 32-bit length and one
// message. All messages have the same fields; an unused one is empty. The parser takes nothing on
// trust: it is fed by whoever can reach the port.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::comm::wire {

inline constexpr size_t kMostBytes = size_t{16} << 20;  // of a frame
inline constexpr size_t kMostBytesBeforeProof = 512;
inline constexpr size_t kMostKeyBytes = 1024;

enum class Kind : uint8_t {
  kChallenge = 1,  // server: value = its nonce
  kProof,          // client: value = nonce + HMAC, key = host, number = rank, count = pid
  kWelcome,        // server: value = HMAC, so that the client knows the server too
  kSet,            // key, value
  kGet,            // key; answered when there is a value
  kAdd,            // key, number; answered with the sum
  kGather,   // key, number = index, count = how many take part, value; answered to all at once
  kCancel,   // number = id of the request that is not waited for any more
  kAbort,    // number = rank, count = pid, key = host, value = what happened
  kSuspect,  // the same, of a rank that seems to hang
  kLeave,    // the end of the connection will not be a failure
  kReply,    // id of the request; number, value
  kRefused,  // id of the request; value = why
  kFailure,  // to everybody: as kAbort
  kEnded,    // as kAbort, of a rank that ended well: a failure if it has never been here
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

// Bytes of a connection, cut into messages. A frame that is too long or makes no sense is kCorrupt.
class Reader {
 public:
  explicit Reader(size_t most_bytes = kMostBytesBeforeProof) : most_bytes_(most_bytes) {}
  void set_most_bytes(size_t bytes) { most_bytes_ = bytes; }

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  std::optional<Message> next();

 private:
  size_t most_bytes_, begin_ = 0;
  std::string buffer_;
};

std::string pack(const std::vector<std::string>& parts);
std::vector<std::string> unpack(std::string_view text);

inline constexpr size_t kNonceBytes = 32, kProofBytes = 32;
std::string random_bytes(size_t count);
// HMAC-SHA256; who ("client", "server") keeps a proof from being sent back as the other side's.
std::string prove(std::string_view secret, std::string_view who, std::string_view their_nonce,
                  std::string_view own_nonce, std::string_view job);
bool same_proof(std::string_view a, std::string_view b);  // takes the same time whatever differs

}  // namespace fleetx::comm::wire
