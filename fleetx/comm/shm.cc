#include "fleetx/comm/shm.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "fleetx/base/error.h"
#include "fleetx/comm/last_error.h"
#include "fleetx/comm/shared.h"

namespace fleetx::comm {
namespace {

Fd make_memory_file(const char* name) {
  Fd fd(memfd_create(name, MFD_CLOEXEC));
  if (!fd) fail(Error::Kind::kUnsupported, str("memfd_create: ", reason()));
  return fd;
}

Fd open_memory_of(const Member& m, int fd) {
  const std::string path = str("/proc/", m.pid, "/fd/", fd);
  Fd opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened)
    fail(Error::Kind::kComm,
         str("shm: cannot open the memory of rank ", m.rank, " (", path, "): ", reason(),
             "; the ranks of a host must run as one user and see each other in /proc"));
  return opened;
}

// Unmaps in its destructor.
class Mapping {
 public:
  Mapping(int fd, size_t bytes) : bytes_(bytes) {
    base_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base_ == MAP_FAILED)
      fail(Error::Kind::kUnsupported, str("shm: cannot map ", bytes, " bytes: ", reason()));
    madvise(base_, bytes, MADV_DONTDUMP);
  }
  ~Mapping() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;

  char* base() const { return static_cast<char*>(base_); }
  size_t bytes() const { return bytes_; }

 private:
  void* base_;
  size_t bytes_;
};

void grow(int fd, size_t bytes) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    fail(Error::Kind::kUnsupported, str("shm: ftruncate to ", bytes, " bytes: ", reason()));
}

// The buffers of all ranks of the host. Each rank reserves as much address space as the machine has
// memory; pages are allocated when they are first used.
class Arena {
 public:
  Arena(int rank, const std::vector<ShmPeer>& peers, int own_fd)
      : rank_(rank), fd_(dup(own_fd)), room_(room_for(peers.size())) {
    grow(fd_.get(), room_);
    for (size_t r = 0; r < peers.size(); ++r) {
      const Fd fd = static_cast<int>(r) == rank
                        ? Fd(dup(own_fd))
                        : open_memory_of(peers[r].member, peers[r].arena_fd);
      grow(fd.get(), room_);  // the first rank sets the size
      maps_.emplace_back(fd.get(), room_);
    }
    // Buffers of different ranks start at different offsets of a page: with equal offsets the CPU
    // takes a load for dependent on an earlier store (4K aliasing).
    free_[static_cast<size_t>(rank % 16) * 192] = room_ - 4096;
  }

  char* base(int rank) const { return maps_[static_cast<size_t>(rank)].base(); }

  uint64_t locate(const void* memory, size_t bytes) const {
    const char* const begin = base(rank_);
    const char* const p = static_cast<const char*>(memory);
    return p >= begin && p + bytes <= begin + room_ ? static_cast<uint64_t>(p - begin) : kNotShared;
  }

  void* allocate(size_t bytes) {
    bytes = (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096;
    std::scoped_lock lock(mutex_);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [begin, room] = *it;
      if (room < bytes) continue;
      free_.erase(it);
      if (room > bytes) free_[begin + bytes] = room - bytes;
      taken_[begin] = bytes;
      return base(rank_) + begin;
    }
    throw std::bad_alloc();
  }

  void release(void* memory) {
    const auto begin = static_cast<size_t>(static_cast<char*>(memory) - base(rank_));
    std::scoped_lock lock(mutex_);
    size_t bytes = taken_.extract(begin).mapped();
    // Returns whole pages to the system: they read as zero again.
    const size_t first = (begin + 4095) / 4096 * 4096, last = (begin + bytes) / 4096 * 4096;
    std::memset(memory, 0, std::min(first - begin, bytes));
    if (last > first)
      fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                static_cast<off_t>(last - first));
    if (begin + bytes > last) std::memset(base(rank_) + last, 0, begin + bytes - last);
    auto next = free_.upper_bound(begin);
    size_t start = begin;
    if (next != free_.end() && next->first == begin + bytes) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
      start = std::prev(next)->first;
      bytes += std::prev(next)->second;
    }
    free_[start] = bytes;
  }

 private:
  static size_t room_for(size_t ranks) {
    const auto memory =
        static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t most = (size_t{64} << 40) / ranks;  // all mappings fit in half the address space
    return std::min(memory, most) / 4096 * 4096;
  }

  int rank_;
  Fd fd_;
  size_t room_;
  std::vector<Mapping> maps_;
  std::mutex mutex_;
  std::map<size_t, size_t> free_, taken_;  // begin and bytes
};

class Shm final : public Shared {
 public:
  // `arena_ranks`: the rank in the arena of each rank of this group.
  Shm(int rank, const std::vector<Member>& members, std::shared_ptr<StoreClient> store,
      Milliseconds timeout, std::shared_ptr<Arena> arena, std::vector<int> arena_ranks,
      Mapping control, std::string name)
      : Shared(rank, members, std::move(store), timeout,
               SharedMemory(control.base(), static_cast<int>(members.size()))),
        arena_(std::move(arena)),
        arena_ranks_(std::move(arena_ranks)),
        control_(std::move(control)),
        name_(std::move(name)) {
    for (const Member& m : members)
      pidfds_.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, m.pid, 0)));
  }
  ~Shm() override { leave(); }

  std::string_view backend() const override { return "shm"; }

  std::shared_ptr<void> allocate(size_t bytes) override {
    return {arena_->allocate(bytes), [arena = arena_](void* p) { arena->release(p); }};
  }

 private:
  uint64_t locate(const void* memory, size_t bytes) const override {
    return arena_->locate(memory, bytes);
  }
  char* address_of(int rank, uint64_t place) const override {
    return arena_->base(arena_ranks_[static_cast<size_t>(rank)]) + place;
  }

  bool is_dead(int rank) const override {
    const Fd& fd = pidfds_[static_cast<size_t>(rank)];
    if (!fd) return true;  // it had ended before we opened it
    pollfd entry{fd.get(), POLLIN, 0};
    return poll(&entry, 1, 0) > 0;
  }

  bool is_stopped(int rank) const override {
    std::ifstream stat(str("/proc/", members()[static_cast<size_t>(rank)].pid, "/stat"));
    std::string text;
    std::getline(stat, text);
    const size_t end = text.rfind(") ");  // ends the name of the program
    return end != std::string::npos && (text[end + 2] == 'T' || text[end + 2] == 't');
  }

  std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) override {
    std::vector<int> arena_ranks;
    for (const int r : subgroup.ranks) arena_ranks.push_back(arena_ranks_[static_cast<size_t>(r)]);
    const auto n = static_cast<int>(subgroup.ranks.size());
    const std::string full_name = name_ + "/" + subgroup.name;
    const Fd own = make_memory_file("fleetx-group");
    const auto fds =
        store()->gather(full_name, subgroup.own, n, std::to_string(own.get()), timeout());
    const Fd control = subgroup.own == 0 ? Fd(dup(own.get()))
                                         : open_memory_of(subgroup.members[0], std::stoi(fds[0]));
    grow(control.get(), SharedMemory::bytes(n));
    auto made = std::make_unique<Shm>(subgroup.own, subgroup.members, store(), timeout(), arena_,
                                      arena_ranks, Mapping(control.get(), SharedMemory::bytes(n)),
                                      full_name);
    made->barrier();  // all ranks have opened it: it can be closed
    return made;
  }

  std::shared_ptr<Arena> arena_;
  std::vector<int> arena_ranks_;
  Mapping control_;
  std::string name_;
  std::vector<Fd> pidfds_;
};

std::string read_link(const char* path) {
  char target[256] = {};
  const ssize_t n = readlink(path, target, sizeof target - 1);
  return n > 0 ? target : "";
}

}  // namespace

ShmFiles create_shared_files() {
  return {make_memory_file("fleetx-arena"), make_memory_file("fleetx-control")};
}

std::unique_ptr<Shared> make_shm(int rank, const std::vector<ShmPeer>& peers, const ShmFiles& own,
                                 std::shared_ptr<StoreClient> store, Milliseconds timeout) {
  const auto n = static_cast<int>(peers.size());
  check_arg(n <= kMaxRanks, "shm: ", n, " ranks on one host; at most ", kMaxRanks);
  std::vector<Member> members;
  std::vector<int> arena_ranks;
  for (int r = 0; r < n; ++r) {
    members.push_back(peers[static_cast<size_t>(r)].member);
    arena_ranks.push_back(r);
  }
  const Fd control =
      rank == 0 ? Fd(dup(own.control.get())) : open_memory_of(members[0], peers[0].control_fd);
  grow(control.get(), SharedMemory::bytes(n));
  auto made = std::make_unique<Shm>(rank, members, std::move(store), timeout,
                                    std::make_shared<Arena>(rank, peers, own.arena.get()),
                                    arena_ranks, Mapping(control.get(), SharedMemory::bytes(n)),
                                    str("shm/", members[0].rank));
  made->barrier();  // all ranks have opened the files: they can be closed
  return made;
}

std::string this_host_id() {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(boot, id);
  // Containers and network namespaces of one machine count as hosts of their own.
  return str(id, read_link("/proc/self/ns/pid"), read_link("/proc/self/ns/net"));
}

}  // namespace fleetx::comm
