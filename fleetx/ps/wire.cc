#include "fleetx/ps/wire.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace fleetx::ps::wire {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kMagic = 0x31535046;  // "FPS1"

}  // namespace

std::string encode_deltas(std::span<const uint64_t> ids) {
  constexpr size_t kMost = 10;  // bytes of an id
  std::string out(ids.size() * sizeof(uint64_t) + kMost, '\0');
  size_t at = 0;
  uint64_t last = 0;
  for (const uint64_t id : ids) {
    const uint64_t delta = id - last;
    last = id;
    // Small negative numbers are small, too.
    uint64_t rest = (delta << 1) ^ (delta >> 63 != 0 ? UINT64_MAX : 0);
    for (; rest >= 128; rest >>= 7) out[at++] = static_cast<char>(rest | 128);
    out[at++] = static_cast<char>(rest);
    if (at >= ids.size() * sizeof(uint64_t)) return {};
  }
  out.resize(at);
  return out;
}

size_t decode_deltas(std::string_view bytes, std::span<uint64_t> ids) {
  size_t at = 0;
  uint64_t last = 0;
  for (uint64_t& id : ids) {
    uint64_t coded = 0;
    for (int shift = 0;; shift += 7) {
      check_file(at < bytes.size() && shift < 64, "ids as deltas: damaged");
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      coded |= uint64_t{byte & 127u} << shift;
      if (byte < 128) break;
    }
    last += (coded >> 1) ^ ((coded & 1) != 0 ? UINT64_MAX : 0);
    id = last;
  }
  return at;
}

std::string_view to_string(Kind kind) {
  constexpr std::string_view kNames[] = {
      "nothing",     "hello",     "pull_dense", "push_dense", "set_dense", "pull_sparse",
      "push_sparse", "push_uses", "barrier",    "meet",       "save",      "commit",
      "load",        "shrink",    "stats",      "ping",       "goodbye",   "stop",
      "copy",        "standby",   "state",      "follow",     "complete",  "forget",
      "reply",       "refused"};
  return kNames[static_cast<size_t>(kind)];
}

HeaderBytes encode(const Header& h) {
  HeaderBytes bytes{};
  size_t at = 0;
  const auto put_number = [&](auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    at += sizeof value;
  };
  put_number(kMagic);
  put_number(h.kind);
  put_number(h.flags);
  put_number(uint16_t{0});
  put_number(h.table);
  put_number(h.lr);
  put_number(h.request);
  put_number(h.sequence);
  put_number(h.wait);
  put_number(h.count);
  put_number(h.bytes);
  FLEETX_CHECK(at == kHeaderBytes);
  return bytes;
}

Header decode(std::span<const char, kHeaderBytes> bytes) {
  Cursor in({bytes.data(), bytes.size()}, "parameter server message");
  check_file(in.number<uint32_t>() == kMagic, "parameter server message: not of this protocol");
  Header h;
  const auto kind = in.number<uint8_t>();
  check_file(kind >= 1 && kind <= static_cast<uint8_t>(Kind::kRefused),
             "parameter server message: unknown kind ", int{kind});
  h.kind = static_cast<Kind>(kind);
  h.flags = in.number<uint8_t>();
  check_file((h.flags & kDeltas) == 0 || has_ids(h.kind), "parameter server message: flags ",
             int{h.flags}, " of ", to_string(h.kind), ", which has no ids");
  check_file(in.number<uint16_t>() == 0, "parameter server message: reserved bytes are not zero");
  h.table = in.number<uint32_t>();
  h.lr = in.number<float>();
  check_file(std::isfinite(h.lr), "parameter server message: learning rate is not finite");
  h.request = in.number<uint64_t>();
  h.sequence = in.number<uint64_t>();
  h.wait = in.number<uint64_t>();
  h.count = in.number<uint64_t>();
  h.bytes = in.number<uint64_t>();
  return h;
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

void put_numbers(std::string& out, const std::vector<uint64_t>& numbers) {
  put(out, static_cast<uint32_t>(numbers.size()));
  for (const uint64_t number : numbers) put(out, number);
}

std::vector<uint64_t> Cursor::numbers() {
  std::vector<uint64_t> all(count(sizeof(uint64_t)));
  for (uint64_t& n : all) n = number<uint64_t>();
  return all;
}

size_t Cursor::count(size_t item_bytes) {
  const auto n = number<uint32_t>();
  check_file(n <= rest_.size() / item_bytes, what_, ": ", n, " items in ", rest_.size(), " bytes");
  return n;
}

std::string encode(const Hello& hello) {
  std::string out;
  put(out, hello.start);
  put(out, hello.server);
  put_text(out, hello.job);
  put(out, hello.confirmed);
  put(out, hello.barrier);
  put_numbers(out, hello.pushes);
  put(out, hello.forwarded);
  put(out, hello.takes_over);
  return out;
}

Hello decode_hello(std::string_view bytes) {
  Cursor in(bytes, "hello");
  Hello hello;
  hello.start = in.number<uint64_t>();
  hello.server = in.number<uint32_t>();
  hello.job = in.text();
  hello.confirmed = in.number<uint64_t>();
  hello.barrier = in.number<uint64_t>();
  hello.pushes = in.numbers();
  hello.forwarded = in.number<uint8_t>();
  hello.takes_over = in.number<uint8_t>();
  in.finish();
  return hello;
}

std::string encode(const Welcome& welcome) {
  std::string out;
  put(out, welcome.sequence);
  put(out, welcome.start);
  put(out, welcome.restored);
  put_numbers(out, welcome.pushes);
  put_text(out, welcome.copy);
  return out;
}

Welcome decode_welcome(std::string_view bytes) {
  Cursor in(bytes, "welcome");
  Welcome welcome{.sequence = in.number<uint64_t>()};
  welcome.start = in.number<uint64_t>();
  welcome.restored = in.number<uint8_t>();
  welcome.pushes = in.numbers();
  welcome.copy = in.text();
  in.finish();
  return welcome;
}

}  // namespace fleetx::ps::wire
