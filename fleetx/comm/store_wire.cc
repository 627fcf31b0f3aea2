#include "fleetx/comm/store_wire.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "fleetx/base/error.h"

namespace fleetx::comm::wire {
namespace {

template <class T>
void put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(size_t n) {
    check_file(n <= rest_.size(), "store message: it ends too early");
    const std::string_view part = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return part;
  }
  template <class T>
  T number() {
    const std::string_view bytes = take(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return static_cast<T>(value);
  }
  std::string_view rest() { return take(rest_.size()); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

Message decode(std::string_view bytes) {
  Cursor in(bytes);
  Message m;
  const auto kind = in.number<uint8_t>();
  check_file(kind >= 1 && kind <= static_cast<uint8_t>(kLastKind), "store message: unknown kind ",
             int{kind});
  m.kind = static_cast<Kind>(kind);
  m.id = in.number<uint32_t>();
  m.number = in.number<int64_t>();
  m.count = in.number<int64_t>();
  const auto key_bytes = in.number<uint16_t>();
  check_file(key_bytes <= kMaxKeyBytes, "store message: a key of ", key_bytes, " bytes");
  m.key = in.take(key_bytes);
  m.value = in.rest();
  return m;
}

}  // namespace

std::string encode(const Message& m) {
  check_arg(m.key.size() <= kMaxKeyBytes, "store: a key of ", m.key.size(), " bytes; at most ",
            kMaxKeyBytes);
  std::string body;
  put(body, static_cast<uint8_t>(m.kind));
  put(body, m.id);
  put(body, m.number);
  put(body, m.count);
  put(body, static_cast<uint16_t>(m.key.size()));
  body += m.key;
  body += m.value;
  check_arg(body.size() <= kMaxBytes, "store: '", m.key, "': a value of ", m.value.size(),
            " bytes; at most ", kMaxBytes);
  std::string frame;
  put(frame, static_cast<uint32_t>(body.size()));
  return frame + body;
}

std::optional<Message> Reader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < 4) return std::nullopt;
  const auto length = Cursor(rest).number<uint32_t>();
  check_file(length <= max_bytes_, "store message of ", length, " bytes; at most ", max_bytes_);
  if (rest.size() - 4 < length) return std::nullopt;
  Message message = decode(rest.substr(4, length));
  begin_ += 4 + length;
  if (begin_ == buffer_.size() || begin_ > kMaxBytes) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return message;
}

size_t Reader::missing() const {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < 4) return 4 - rest.size();
  const size_t whole = 4 + std::min<size_t>(Cursor(rest).number<uint32_t>(), max_bytes_);
  return whole - std::min(whole, rest.size());
}

std::string pack(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    put(out, static_cast<uint32_t>(part.size()));
    out += part;
  }
  return out;
}

std::vector<std::string> unpack(std::string_view text) {
  std::vector<std::string> parts;
  for (Cursor in(text); !in.empty();) parts.emplace_back(in.take(in.number<uint32_t>()));
  return parts;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  FLEETX_CHECK(
      RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1,
      "no random numbers from the system");
  return bytes;
}

std::string prove(std::string_view secret, std::string_view who, std::string_view their_nonce,
                  std::string_view own_nonce, std::string_view job) {
  const std::string text =
      pack({std::string(who), std::string(their_nonce), std::string(own_nonce), std::string(job)});
  std::string proof(kProofBytes, '\0');
  unsigned length = 0;
  FLEETX_CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                    reinterpret_cast<unsigned char*>(proof.data()), &length) != nullptr &&
                   length == kProofBytes,
               "HMAC-SHA256 failed");
  return proof;
}

bool same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fleetx::comm::wire
