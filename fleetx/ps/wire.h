// Frames between workers and servers: a header of fixed size, then a payload. Numbers are
// little-endian; values and ids travel as they are in memory. A connection begins with the proof of
// the job's secret (comm/tcp_acceptor.h), then the worker says hello, then requests and replies go
// in both directions; a reply carries the number of its request. Input is untrusted: the receiver
// knows from the header what size a payload must have before it takes memory for it.
//
//   request        fields                          payload
//   kHello         count = worker                  the Hello below
//   kPullDense     table, wait                     none; reply: values
//   kPushDense     table, sequence, lr             gradients of the server's blocks
//   kSetDense      table                           values
//   kPullSparse    table, wait, count, flags       ids; reply: rows
//   kPushSparse    table, sequence, count, lr      ids, then their gradients
//   kPushUses      table, sequence, count          ids, then how often each was shown and clicked
//   kBarrier       count = number of the barrier   none; answered when all workers have come
//   kMeet          count = number of the meeting   none; the worker does not push until all workers
//                                                  have come to it
//   kSave kLoad    count = number of the snapshot, folder
//                  flags of kSave
//   kCommit        the same                        folder; the snapshot is complete
//   kShrink        lr = threshold, flags,          none; reply: count = rows dropped
//                  count = number of the call
//   kStats kPing kGoodbye kStop                    none
//   kCopy                                          none; reply: ip:port of the copy it keeps,
//                                                  count = its Part
//   kStandby                                       none; reply: its own ip:port and Part
//   kState         count = offset                  some of the state of who is in its place
//   kFollow                                        none; the state is whole, and taken over
//   kComplete                                      none; all that was confirmed meanwhile is there
//   kForget                                        none; it has missed changes, and is to forget
//   kReply         of the request                  as above
//   kRefused       of the request, count = kind    why
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fleetx/base/error.h"

namespace fleetx::ps::wire {

enum class Kind : uint8_t {
  kHello = 1,
  kPullDense,
  kPushDense,
  kSetDense,
  kPullSparse,
  kPushSparse,
  kPushUses,
  kBarrier,
  kMeet,
  kSave,
  kCommit,
  kLoad,
  kShrink,
  kStats,
  kPing,
  kGoodbye,
  kStop,
  kCopy,
  kStandby,
  kState,
  kFollow,
  kComplete,
  kForget,
  kReply,
  kRefused,
};
std::string_view to_string(Kind kind);
// Applied once, by its number.
constexpr bool is_push(Kind kind) {
  return kind == Kind::kPushDense || kind == Kind::kPushSparse || kind == Kind::kPushUses;
}

constexpr bool has_ids(Kind kind) {
  return kind == Kind::kPullSparse || kind == Kind::kPushSparse || kind == Kind::kPushUses;
}

inline constexpr uint8_t kDoNotMake = 1;                      // flag of kPullSparse
inline constexpr uint8_t kBase = 8, kDelta = 16, kText = 32;  // of kSave and kCommit (snapshot.h)
inline constexpr uint8_t kByThreshold = 4;                    // of kShrink: there is one
inline constexpr uint8_t kAlone = 2;  // of a reply: the server has no copy any more
// Of a reply to a ping or a change, whose text is its ip:port: the server has a copy again.
inline constexpr uint8_t kNewCopy = 64;
inline constexpr uint8_t kDeltas = 128;  // of what has ids: they travel as deltas

// Of the two that have the same tables (replica.h), one is active.
enum class Part : uint64_t {
  kStandby,    // has all that the active one has confirmed, and may take its place
  kActive,     // workers are with it
  kBlank,      // was started again, and has nothing
  kFollowing,  // is given what the active one has
};

struct Header {
  Kind kind = Kind::kPing;
  uint8_t flags = 0;
  uint32_t table = 0;
  float lr = 0;
  uint64_t request = 0;   // chosen by the worker
  uint64_t sequence = 0;  // of a push, from 1 on: each worker counts for each server
  uint64_t wait = 0;      // how many pushes of every worker must be applied before the pull
  uint64_t count = 0;
  uint64_t bytes = 0;  // of the payload
  bool operator==(const Header&) const = default;
};

inline constexpr size_t kHeaderBytes = 56;
using HeaderBytes = std::array<char, kHeaderBytes>;
HeaderBytes encode(const Header& header);
// kCorrupt for what no version of this protocol sends. Sizes are the receiver's to check.
Header decode(std::span<const char, kHeaderBytes> bytes);

// Payloads of texts: folders, errors, job descriptions, statistics.
inline constexpr uint64_t kMaxTextBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMaxStateBytes = uint64_t{4} << 20;  // of a kState

struct Hello {
  uint64_t start = 0;  // a random number of this process: a worker that was started again is new
  uint32_t server = 0;
  std::string job{};  // JobSpec::text()
  // What this server has confirmed to this process, for one that has been started again: the last
  // push, the pushes of each table (dense ones first) and the last barrier that the worker came to.
  uint64_t confirmed = 0, barrier = 0;
  std::vector<uint64_t> pushes{};
  uint8_t forwarded = 0;   // said by a server in the name of its worker, to the copy (replica.h)
  uint8_t takes_over = 0;  // who was active cannot be reached: the standby takes its place
};
std::string encode(const Hello& hello);
Hello decode_hello(std::string_view bytes);

// The reply to a hello: how many pushes of this worker each table has (dense ones first), and the
// last sequence number applied.
struct Welcome {
  uint64_t sequence = 0;
  uint64_t start = 0;    // a random number of the server's process
  uint8_t restored = 0;  // it goes on from its snapshot
  std::vector<uint64_t> pushes{};
  std::string copy{};  // ip:port of who takes the server's place; "": nobody
};
std::string encode(const Welcome& welcome);
Welcome decode_welcome(std::string_view bytes);

// Ids as differences of neighbours, 7 bits to a byte, in any order: small ids take two or three
// bytes instead of eight. Empty where that is not smaller.
std::string encode_deltas(std::span<const uint64_t> ids);
// Exactly so many ids; where they end in `bytes`.
size_t decode_deltas(std::string_view bytes, std::span<uint64_t> ids);

// Appends and takes numbers and texts; for the payloads here, statistics and snapshots.
template <class T>
void put(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text);
void put_numbers(std::string& out, const std::vector<uint64_t>& numbers);

class Cursor {
 public:
  Cursor(std::string_view bytes, std::string_view what) : rest_(bytes), what_(what) {}
  std::string_view take(size_t n) {
    check_file(n <= rest_.size(), what_, ": it ends too early");
    const std::string_view part = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return part;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<uint32_t>())); }
  // How many items of at least this size follow; more than there can be is damage.
  size_t count(size_t item_bytes);
  std::vector<uint64_t> numbers();
  void finish() const { check_file(rest_.empty(), what_, ": ", rest_.size(), " bytes too many"); }

 private:
  std::string_view rest_, what_;
};

}  // namespace fleetx::ps::wire
