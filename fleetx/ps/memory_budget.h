// What the tables of a server may take of memory in all, rows and index. Every user has a share:
// `floor` bytes are kept for it, the rest goes to who comes first. A user asks before it takes
// memory, and asks for much at once. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace fleetx::ps {

// What a server may use. With replicas it has to do for its own tables and those that it copies.
struct MemoryLimits {
  int64_t bytes = 0;   // 0: any
  std::string disk{};  // a folder for rows beyond that; "": none
};

class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t bytes) : bytes_(bytes), common_(bytes) {}
  int64_t bytes() const { return bytes_; }
  int64_t used() const;

  class Share {
   public:
    Share() = default;  // of no budget: may take anything
    Share(MemoryBudget& budget, int64_t floor);
    ~Share();
    Share(Share&& other) noexcept;
    Share& operator=(Share&&) = delete;

    [[nodiscard]] bool take(int64_t bytes);  // false: there is not as much
    void give_back(int64_t bytes);
    int64_t used() const { return used_; }

   private:
    MemoryBudget* budget_ = nullptr;
    int64_t floor_ = 0, used_ = 0;
  };

 private:
  const int64_t bytes_;
  mutable std::mutex mutex_;
  int64_t common_;    // that nobody has, nor is kept for anyone
  int64_t used_ = 0;  // by all shares
};

}  // namespace fleetx::ps
