// The connections of a rank to the others of its job, shared by all its groups. A pair of ranks has
// one, for both directions: what is sent acknowledges what has come, which a short message would
// otherwise pay for with a packet of its own. It is made when the first message is sent, so that a
// large job has only the connections it uses. Where both ranks connect at the same time, the
// connection of the lower one counts.
//
// Whoever waits for a message moves the bytes of all messages meanwhile, on its own thread. The
// thread of the mesh accepts connections, and moves bytes only for buffered sends that nobody waits
// for.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "fleetx/comm/tcp_acceptor.h"

namespace fleetx::comm {

// What precedes the bytes of a message.
struct TcpHeader {
  uint64_t group = 0, label = 0, bytes = 0;
  bool operator==(const TcpHeader&) const = default;
};

// A message that is sent or received.
struct TcpRequest {
  int peer = 0;
  bool sends = false;
  TcpHeader header;
  char* data = nullptr;
  size_t moved = 0;  // bytes; of a send, with its header
  std::atomic<bool> done = false;
  enum class Failure : uint8_t { kNone, kClosed, kUnreachable, kMismatch };
  Failure failure = Failure::kNone;  // with its reason; set before done
  std::string error{};
  std::unique_ptr<char[]> kept{};  // data of a send that was abandoned in the middle
};
using TcpRequestPtr = std::shared_ptr<TcpRequest>;

class TcpMesh {
 public:
  // `check` is called while a thread waits; it may throw.
  using Check = std::function<void()>;

  TcpMesh(int rank, Fd listener, std::vector<Endpoint> addresses, TcpIdentity identity);
  ~TcpMesh();
  TcpMesh(const TcpMesh&) = delete;
  TcpMesh& operator=(const TcpMesh&) = delete;

  // Connects if this is the first message to the peer. Throws ConnectionLost.
  TcpRequestPtr post_send(int peer, uint64_t group, uint64_t label, const void* data, size_t bytes,
                          Deadline deadline, const Check& check);
  TcpRequestPtr post_receive(int peer, uint64_t group, uint64_t label, void* data, size_t bytes);
  // False at the deadline.
  bool wait(const TcpRequest& request, Deadline deadline, const Check& check);
  // The memory of the request is not used any more.
  void abandon(const TcpRequestPtr& request);
  // Sends what has been posted although nobody waits for it.
  void send_in_background();

 private:
  struct Link {
    std::unique_ptr<Channel> channel;
    std::deque<TcpRequestPtr> queue;  // sends
    bool blocked = false;             // waits until the socket can be written to
    bool is_closed = false;           // for writing; what the peer sent before may still come
    TcpHeader header;                 // of the message that comes
    size_t header_bytes = 0;
    TcpRequestPtr message;  // whose bytes come now; null: a header comes
    size_t wakes_at = 1;    // see Channel::wake_at
    // Room for messages that nobody expects, so that a short one takes one call of the system.
    std::array<char, size_t{8} << 10> more;
  };
  struct Peer {
    Endpoint address;
    std::unique_ptr<Link> link;
    bool connecting = false;  // this rank does
    std::optional<ConnectionLost> lost;
    std::vector<TcpRequestPtr> expected;  // receives whose message has not begun
    std::list<TcpRequestPtr> early;       // messages without a receive
  };

  // Moved for one connection before the others have their turn.
  static constexpr size_t kTurnBytes = size_t{256} << 10;

  Peer& at(int peer) { return peers_[static_cast<size_t>(peer)]; }
  void connect(int peer, Deadline deadline, const Check& check);
  void await_connection_of(int peer, Deadline deadline, const Check& check);
  void accepted(int peer, std::unique_ptr<Channel> channel);
  void watch(int fd, int action, int peer, uint32_t events);
  void finish_sending(Deadline deadline);
  // The functions below hold the mutex.
  void add_link(int peer, std::unique_ptr<Channel> channel);
  bool drive(std::unique_lock<std::mutex>& lock, int timeout_ms);
  // False: nothing has come.
  bool receive(int peer);
  bool read_once(Peer& peer, size_t& moved);
  void advance(Link& link, size_t n);
  void take(Peer& peer, const char* bytes, size_t n);
  void take_header(Peer& peer, size_t n);
  void begin_message(Peer& peer);
  void flush(int peer);
  void set_blocked(int peer, bool blocked);
  void lose(int peer, const ConnectionLost& why);
  void close_for_writing(int peer, const ConnectionLost& why);
  void look_for_silence();
  bool all_sent() const;
  bool look(std::unique_lock<std::mutex>& lock, const TcpRequest& request, int turn);
  void sleep(std::unique_lock<std::mutex>& lock, const TcpRequest& request, int timeout_ms);
  size_t missing_bytes(const TcpRequest& request);
  void wake_at(int peer, size_t bytes);
  static void finish(TcpRequest& request);
  static void fail(TcpRequest& request, const ConnectionLost& why);
  static void fail_mismatch(TcpRequest& request, uint64_t bytes_sent);
  void serve();
  void wake_thread();

  const int rank_;
  const TcpIdentity identity_;
  Fd epoll_;         // of connections
  Fd thread_epoll_;  // of the mesh's thread: new connections, wake_, sometimes epoll_
  Fd wake_;
  TcpAcceptor acceptor_;

  std::mutex connecting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  int waiting_ = 0;
  int blocked_ = 0;  // connections
  int links_ = 0;
  // How often a wait for a long message would have been short lately; see wait().
  int short_waits_ = 0;
  bool driving_ = false;     // a thread waits for events
  bool background_ = false;  // buffered sends are left to the thread
  Deadline next_look_{};
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace fleetx::comm
