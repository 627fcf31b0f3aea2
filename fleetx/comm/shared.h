// Collectives between ranks of one host over shared memory. The backends local and shm differ in
// where the memory comes from, which of a rank's own memory its peers can map, and how a dead peer
// is detected.
#pragma once

#include <deque>

#include "fleetx/comm/communicator.h"
#include "fleetx/comm/reduce.h"
#include "fleetx/comm/shared_memory.h"
#include "fleetx/comm/slice_exchange.h"

namespace fleetx::comm {

class Shared : public Communicator {
 public:
  ~Shared() override;

  // For calls that go between hosts, too. All ranks make the same call and see each other's memory
  // until all of them call close(). The bytes that each rank brings and gets are given by rank; 0:
  // it has no such memory. Empty, on all ranks: some memory cannot be seen; nothing is open.
  std::optional<HostMemory> open(const Call& call, const std::vector<size_t>& in_bytes,
                                 const std::vector<size_t>& out_bytes, Deadline deadline);
  void close(Deadline deadline) { sync(deadline); }

 protected:
  Shared(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
         Milliseconds timeout, SharedMemory memory);

  void perform(const Call& call, Deadline deadline) override;
  bool can_be_interrupted() const override { return true; }

  // The shared offset of this rank's memory (kNotShared: peers cannot map it), and the address of a
  // peer's offset in this process.
  virtual uint64_t locate(const void* memory, size_t bytes) const = 0;
  virtual char* address_of(int rank, uint64_t place) const = 0;
  // Whether the process of this rank has ended, or is stopped (for the error text).
  virtual bool is_dead(int) const { return false; }
  virtual bool is_stopped(int) const { return false; }
  // Tells the peers that this rank has left. Called when no call is in flight.
  void leave();

 private:
  // A message that was received before its recv() was called.
  struct ReceivedMessage {
    int tag;
    std::string bytes;
    size_t arrived = 0;
  };
  // A collective in flight.
  struct Collective {
    const Call& call;
    Deadline deadline;
    bool direct;    // zero-copy; otherwise data goes through the staging buffers in chunks
    size_t item;    // bytes of an element
    int64_t chunk;  // elements per chunk
  };

  Slot& own() const { return memory_.slot(rank()); }
  const CallDescriptor& descriptor(int peer) const;
  void arrive();
  void wake_all();
  void wait_for_all(Deadline deadline);
  void sync(Deadline deadline) {
    arrive();
    wait_for_all(deadline);
  }
  // Waits until ready(). `pending(rank)`: whether this rank is still waited for.
  template <class Ready, class Pending>
  void wait(const Ready& ready, const Pending& pending, Deadline deadline);
  template <class Ready, class Pending>
  void check_peers(const Ready& ready, const Pending& pending, Deadline deadline);

  void match_call(const Call& call, uint64_t in, uint64_t out, Deadline deadline);
  void small_all_reduce(const Call& call, Deadline deadline);
  Collective begin(const Call& call, Deadline deadline);
  void all_reduce(const Collective& s);
  void reduce_scatter(const Collective& s);
  void all_gather(const Collective& s);
  void broadcast(const Collective& s);
  void all_to_all(const Collective& s);
  // Calls body(offset, count) for each chunk once all ranks have made theirs visible. Without
  // zero-copy, put(offset, count, stage) copies the chunk into the staging buffer.
  template <class Put, class Body>
  void for_each_chunk(const Collective& s, const Put& put, const Body& body);
  // A put() for inputs of size() parts: the same chunk of each.
  auto put_parts(const Collective& s) const {
    return [&](int64_t offset, int64_t count, char* stage) {
      for (int r = 0; r < size(); ++r)
        copy(stage + static_cast<size_t>(r * count) * s.item,
             static_cast<const char*>(s.call.in) +
                 static_cast<size_t>(r * s.call.count + offset) * s.item,
             static_cast<size_t>(count) * s.item);
    };
  }
  // A rank's input: at element `offset` of its own memory (zero-copy), or at `staged` of its
  // staging buffer.
  const char* input(const Collective& s, int peer, int64_t offset, int64_t staged) const;
  char* part(int peer) const { return memory_.slot(peer).stage[chunks_ & 1]; }

  void send(const Call& call, Deadline deadline);
  void receive(const Call& call, Deadline deadline);
  bool drain(int from);  // false: nothing was received

  SharedMemory memory_;
  uint32_t phase_ = 0, calls_ = 0, chunks_ = 0;
  const bool oversubscribed_;  // more ranks than cores: spinning would take a peer's core
  std::vector<std::deque<ReceivedMessage>> received_;
};

}  // namespace fleetx::comm
