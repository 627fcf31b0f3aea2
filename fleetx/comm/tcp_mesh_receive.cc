// What a rank receives from the others.
#include <algorithm>
#include <array>
#include <cstring>

#include "fleetx/comm/reduce.h"
#include "fleetx/comm/tcp_mesh.h"

namespace fleetx::comm {
namespace {

// Of a message whose header has not come, read to the place of the one that is expected.
constexpr size_t kMaxGuess = size_t{64} << 10;

}  // namespace

TcpRequestPtr TcpMesh::post_receive(int peer, uint64_t group, uint64_t label, void* data,
                                    size_t bytes) {
  auto request = std::make_shared<TcpRequest>();
  request->peer = peer;
  request->header = {group, label, bytes};
  request->data = static_cast<char*>(data);
  const std::scoped_lock lock(mutex_);
  Peer& p = at(peer);
  const auto early = std::find_if(p.early.begin(), p.early.end(), [&](const TcpRequestPtr& r) {
    return r->header.group == group && r->header.label == label;
  });
  if (early == p.early.end()) {
    if (!p.lost || p.link)
      p.expected.push_back(request);
    else
      fail(*request, *p.lost);
    return request;
  }
  const TcpRequestPtr message = *early;
  p.early.erase(early);
  if (message->header.bytes != bytes) {
    fail_mismatch(*request, message->header.bytes);
    if (!message->done) p.early.push_back(message);  // its bytes have to go somewhere
    return request;
  }
  copy(request->data, message->data, message->moved);
  request->moved = message->moved;
  if (message->done)
    finish(*request);
  else
    p.link->message = request;  // the rest goes straight to its place
  return request;
}

// A header has come: finds the place of its message.
void TcpMesh::begin_message(Peer& peer) {
  Link& in = *peer.link;
  in.header_bytes = 0;
  const auto expected =
      std::find_if(peer.expected.begin(), peer.expected.end(), [&](const TcpRequestPtr& r) {
        return r->header.group == in.header.group && r->header.label == in.header.label;
      });
  if (expected != peer.expected.end()) {
    const TcpRequestPtr request = *expected;
    peer.expected.erase(expected);
    if (request->header.bytes == in.header.bytes) {
      in.message = request;
      return;
    }
    fail_mismatch(*request, in.header.bytes);
  }
  auto message = std::make_shared<TcpRequest>();
  message->header = in.header;
  message->kept.reset(new char[in.header.bytes]);
  message->data = message->kept.get();
  peer.early.push_back(message);
  in.message = message;
}

// `n` bytes of a header have come, which is not longer.
void TcpMesh::take_header(Peer& peer, size_t n) {
  Link& in = *peer.link;
  in.header_bytes += n;
  if (in.header_bytes < sizeof in.header) return;
  begin_message(peer);
  if (in.message->header.bytes == 0) finish(*std::exchange(in.message, {}));
}

// `n` more bytes are in the place of their message.
void TcpMesh::advance(Link& link, size_t n) {
  TcpRequest& m = *link.message;
  m.moved += n;
  if (m.moved == m.header.bytes) finish(*std::exchange(link.message, {}));
}

// Bytes that were read to another place than their message's.
void TcpMesh::take(Peer& peer, const char* bytes, size_t n) {
  Link& in = *peer.link;
  while (n > 0) {
    size_t now = 0;
    if (in.message) {
      TcpRequest& m = *in.message;
      now = std::min(n, m.header.bytes - m.moved);
      std::memcpy(m.data + m.moved, bytes, now);
      advance(in, now);
    } else {
      now = std::min(n, sizeof in.header - in.header_bytes);
      std::memcpy(reinterpret_cast<char*>(&in.header) + in.header_bytes, bytes, now);
      take_header(peer, now);
    }
    bytes += now;
    n -= now;
  }
}

// Reads the rest of a message, the header of the next one, and what follows it: most often the
// message that is expected first, which goes to its place at once. False: the socket has no more.
bool TcpMesh::read_once(Peer& peer, size_t& moved) {
  Link& in = *peer.link;
  std::array<iovec, 4> parts;
  size_t count = 0, in_message = 0;
  if (in.message) {
    in_message = in.message->header.bytes - in.message->moved;
    parts[count++] = {in.message->data + in.message->moved, in_message};
  }
  const size_t header_left = sizeof in.header - in.header_bytes;
  parts[count++] = {reinterpret_cast<char*>(&in.header) + in.header_bytes, header_left};
  const TcpRequest* const guess = peer.expected.empty() ? nullptr : peer.expected.front().get();
  const size_t guessed = guess ? std::min(guess->header.bytes, kMaxGuess) : 0;
  if (guessed > 0) parts[count++] = {guess->data, guessed};
  // Not behind the begin of a long message: more of that would follow.
  if (!guess || guessed == guess->header.bytes) parts[count++] = {in.more.data(), in.more.size()};
  const size_t all = bytes_of({parts.data(), count}), n = in.channel->read({parts.data(), count});
  moved += n;
  size_t left = n;  // to be handed out
  const auto part = [&](size_t most) {
    const size_t now = std::min(left, most);
    left -= now;
    return now;
  };
  if (const size_t now = part(in_message)) advance(in, now);
  const size_t now_header = part(header_left), now_guess = part(guessed);
  std::vector<char> other;  // what is not the message that was expected
  const bool is_guess = guess && in.header == guess->header;
  if (now_guess > 0 && !is_guess) other.assign(guess->data, guess->data + now_guess);
  if (now_header > 0) take_header(peer, now_header);
  if (now_guess > 0 && is_guess) advance(in, now_guess);
  take(peer, other.data(), other.size());
  take(peer, in.more.data(), left);
  return n == all;
}

bool TcpMesh::receive(int peer) {
  Peer& p = at(peer);
  const Channel& channel = *p.link->channel;
  size_t moved = 0;
  try {
    while ((moved < kTurnBytes || channel.has_decrypted()) && read_once(p, moved)) continue;
  } catch (const ConnectionLost& e) {
    lose(peer, e);
    return true;
  }
  return moved > 0;
}

}  // namespace fleetx::comm
