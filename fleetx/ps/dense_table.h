// The blocks of a dense table that one server holds, each with its states: the values of a block,
// then each of its states. Not thread-safe: the server uses a table from one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "fleetx/ps/job_spec.h"

namespace fleetx::ps {

class DenseTable {
 public:
  // `blocks`: of the whole table; those of other servers are left out.
  DenseTable(const DenseSpec& spec, const std::vector<Block>& blocks, int server);

  int64_t size() const { return size_; }  // values of all blocks, the length of a pull or push
  int64_t bytes() const;
  bool is_set() const { return set_; }

  void set(std::span<const float> values);
  void pull(std::span<float> values) const;
  void push(std::span<const float> gradients, float lr);
  // Gradients that were computed at `pulled` become those of now, nearly: g += g * g * (now -
  // pulled).
  void compensate(std::span<float> gradients, std::span<const float> pulled) const;

  struct Entry {
    Block block;
    UpdateRulePtr rule;
    std::vector<float> record{}, scalars{};
  };
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }
  void mark_set() { set_ = true; }  // after a load

 private:
  std::vector<Entry> entries_;
  int64_t size_ = 0;
  bool set_ = false;
};

}  // namespace fleetx::ps
