// Backend local: the ranks are threads of one process. For tests, and to try strategies without a
// launcher.
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "fleetx/base/error.h"
#include "fleetx/comm/shared.h"
#include "fleetx/comm/timeouts.h"

namespace fleetx::comm {
namespace {

// The memory of groups by name; freed with the last rank.
class MemoryRegistry {
 public:
  std::shared_ptr<void> memory(const std::string& name, int size) {
    std::scoped_lock lock(mutex_);
    std::shared_ptr<void> memory = memories_[name].lock();
    if (!memory) {
      // Unused pages cost nothing.
      const size_t bytes = SharedMemory::bytes(size);
      void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (pages == MAP_FAILED) throw std::bad_alloc();
      memory = {pages, [bytes](void* p) { munmap(p, bytes); }};
      memories_[name] = memory;
    }
    return memory;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<void>> memories_;
};

class Local final : public Shared {
 public:
  Local(int rank, std::vector<Member> members, Milliseconds timeout,
        std::shared_ptr<MemoryRegistry> registry, std::shared_ptr<void> memory, std::string name)
      : Shared(rank, members, nullptr, timeout,
               SharedMemory(memory.get(), static_cast<int>(members.size()))),
        registry_(std::move(registry)),
        memory_(std::move(memory)),
        name_(std::move(name)) {}
  ~Local() override { leave(); }

  std::string_view backend() const override { return "local"; }

 private:
  uint64_t locate(const void* memory, size_t) const override {
    return reinterpret_cast<uint64_t>(memory);
  }
  char* address_of(int, uint64_t place) const override { return reinterpret_cast<char*>(place); }

  std::unique_ptr<Communicator> make_group(const Subgroup& subgroup) override {
    const std::string full_name = name_ + "/" + subgroup.name;
    auto memory = registry_->memory(full_name, static_cast<int>(subgroup.ranks.size()));
    auto made = std::make_unique<Local>(subgroup.own, subgroup.members, timeout(), registry_,
                                        memory, full_name);
    made->barrier();  // no rank may release the memory before all have found it
    return made;
  }

  std::shared_ptr<MemoryRegistry> registry_;
  std::shared_ptr<void> memory_;
  std::string name_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local(int size, Milliseconds timeout) {
  check_arg(size >= 1 && size <= kMaxRanks, "local: ", size, " ranks; expected 1 to ", kMaxRanks);
  const auto registry = std::make_shared<MemoryRegistry>();
  const auto memory = registry->memory("", size);
  std::vector<Member> members;
  for (int r = 0; r < size; ++r) members.push_back({r, "this process", getpid()});
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < size; ++r)
    ranks.push_back(
        std::make_unique<Local>(r, members, timeout_or_default(timeout), registry, memory, ""));
  return ranks;
}

}  // namespace fleetx::comm
