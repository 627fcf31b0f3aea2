// Collectives between ranks that see common memory. The backends local and shm differ in where the
// memory comes from, which of a rank's own memory the others can see, and how a death is noticed.
#pragma once

#include <deque>

#include "fleetx/comm/communicator.h"
#include "fleetx/comm/reduce.h"
#include "fleetx/comm/shared_memory.h"

namespace fleetx::comm {

class Shared : public Communicator {
 protected:
  Shared(int rank, std::vector<Member> members, std::shared_ptr<StoreClient> store,
         Milliseconds timeout, SharedMemory memory);
  ~Shared() override;

  void perform(const Call& call, Deadline deadline) override;
  bool can_be_interrupted() const override { return true; }

  // How others may find memory of this rank, and where memory of another rank is here.
  virtual uint64_t locate(const void* memory, size_t bytes) const = 0;
  virtual char* address_of(int rank, uint64_t place) const = 0;
  // Whether the process of this rank has ended, or does not run (for the error's text).
  virtual bool is_dead(int) const { return false; }
  virtual bool is_stopped(int) const { return false; }
  // Says that this rank will not take part any more. Once nothing runs.
  void leave();

 private:
  // A message that came while another was waited for.
  struct Letter {
    int tag;
    std::string bytes;
    size_t arrived = 0;
  };
  // A collective that is under way.
  struct Stage {
    const Call& call;
    Deadline deadline;
    bool direct;    // the ranks see each other's memory; else it goes through the stages in pieces
    size_t item;    // bytes of an element
    int64_t piece;  // elements that go at a time
  };

  Slot& own() const { return memory_.slot(rank()); }
  const Post& post(int peer) const;
  void arrive();
  void ring_all();
  void wait_for_all(Deadline deadline);
  void sync(Deadline deadline) {
    arrive();
    wait_for_all(deadline);
  }
  // Until ready() says true. `pending(rank)`: whether it still waits for this one.
  template <class Ready, class Pending>
  void wait(const Ready& ready, const Pending& pending, Deadline deadline);
  template <class Ready, class Pending>
  void look_around(const Ready& ready, const Pending& pending, Deadline deadline);

  void meet(const Call& call, uint64_t in, uint64_t out, Deadline deadline);
  void small_all_reduce(const Call& call, Deadline deadline);
  Stage begin(const Call& call, Deadline deadline);
  void all_reduce(const Stage& s);
  void reduce_scatter(const Stage& s);
  void all_gather(const Stage& s);
  void broadcast(const Stage& s);
  void all_to_all(const Stage& s);
  // body(offset, count) for each piece, when all ranks have made theirs visible: it is already, or
  // put(offset, count, stage) copies it.
  template <class Put, class Body>
  void pieces(const Stage& s, const Put& put, const Body& body);
  // A put() for inputs of size() parts: the same piece of each.
  auto put_parts(const Stage& s) const {
    return [&](int64_t offset, int64_t count, char* stage) {
      for (int r = 0; r < size(); ++r)
        copy(stage + static_cast<size_t>(r * count) * s.item,
             static_cast<const char*>(s.call.in) +
                 static_cast<size_t>(r * s.call.count + offset) * s.item,
             static_cast<size_t>(count) * s.item);
    };
  }
  // A rank's input: from element `offset` on where its memory is visible, `staged` on where it is
  // not.
  const char* input(const Stage& s, int peer, int64_t offset, int64_t staged) const;
  char* part(int peer) const { return memory_.slot(peer).stage[pieces_ & 1]; }

  void send(const Call& call, Deadline deadline);
  void receive(const Call& call, Deadline deadline);
  bool drain(int from);  // false: nothing has come

  SharedMemory memory_;
  uint32_t phase_ = 0, calls_ = 0, pieces_ = 0;
  const bool crowded_;  // more ranks than cores
  std::vector<std::deque<Letter>> letters_;
};

}  // namespace fleetx::comm
