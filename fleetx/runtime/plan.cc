#include "fleetx/runtime/plan.h"

#include <algorithm>
#include <cstring>

#include "fleetx/base/interrupt.h"
#include "fleetx/runtime/trace.h"

namespace fleetx::runtime {

int Plan::feed_index(std::string_view name) const {
  for (size_t i = 0; i < planned_.feeds.size(); ++i)
    if (planned_.feeds[i].first == name) return static_cast<int>(i);
  return -1;
}

void Plan::set_feed(int index, const void* data) {
  const auto i = static_cast<size_t>(index);
  if (feed_data_[i] == data) return;
  feed_data_[i] = data;
  for (const size_t place : feed_uses_[i]) pointers_[place] = const_cast<void*>(data);
}

bool Plan::select_fetches(const ir::Names& names) {
  if (names == selected_names_) return true;
  std::vector<size_t> selected;
  for (const std::string& name : names) {
    // A name that is asked for twice is two tensors.
    size_t i = 0;
    while (i < planned_.fetches.size() &&
           (planned_.fetches[i].name != name || std::ranges::count(selected, i) > 0))
      ++i;
    if (i == planned_.fetches.size()) return false;
    selected.push_back(i);
  }
  selected_ = std::move(selected);
  selected_names_ = names;
  return true;
}

void Plan::begin_run() {
  memory_->settle();
  char* const arena = memory_->arena();
  if (arena == arena_) return;
  // Another plan of the executor needed a larger one.
  for (const size_t place : arena_uses_)
    pointers_[place] = arena + (static_cast<char*>(pointers_[place]) - arena_);
  arena_ = arena;
}

void Plan::give_up() {
  ir::Names names;
  for (const auto& [name, size] : planned_.groups) names.push_back(name);
  memory_->abandon(groups_, names);
}

void Plan::run() {
  begin_run();
  size_t current = 0;
  try {
    for (const size_t end = calls_.size(); current < end; ++current) {
      const Call& call = calls_[current];
      if (call.is_skipped()) continue;
      check_interrupt();
      call.kernel->run(kernel::Run(call.pointers.data()));
    }
  } catch (const Error& e) {
    give_up();
    rethrow_with_step(current, e);
  } catch (...) {
    give_up();
    throw;
  }
  copy_fetches();
}

void Plan::run(Observer& observer) {
  begin_run();
  size_t current = 0;
  try {
    for (const size_t end = calls_.size(); current < end; ++current) {
      const Call& call = calls_[current];
      if (call.is_skipped()) continue;
      check_interrupt();
      const uint64_t start = trace::now_ns();
      call.kernel->run(kernel::Run(call.pointers.data()));
      observer.after(*this, planned_.steps[current], current, start, trace::now_ns());
    }
  } catch (const Error& e) {
    give_up();
    rethrow_with_step(current, e);
  } catch (...) {
    give_up();
    throw;
  }
  copy_fetches();
}

// A kernel that meets bad data (an id out of range, a label that is no class) throws; the message
// gets the op.
void Plan::rethrow_with_step(size_t index, const Error& e) const {
  const std::string message = e.what();
  const std::string& description = planned_.steps[index].description;
  throw Error(e.kind(), message.starts_with(description) ? message : description + message);
}

void* Plan::address_of(const Storage& storage) const {
  switch (storage.region) {
    case Region::kArena: return memory_->arena() + storage.block.offset;
    case Region::kBucket:
      return static_cast<char*>(bucket_memory_[static_cast<size_t>(storage.bucket)].get()) +
             storage.block.offset;
    case Region::kFeed:
      return const_cast<void*>(feed_data_[static_cast<size_t>(feed_index(storage.var))]);
    case Region::kScope: return held_.at(storage.var).raw();
  }
  return nullptr;
}

size_t Plan::own_bytes() const {
  size_t sum = planned_.own_bytes() + pointers_.size() * sizeof(void*) + planned_.fetch_bytes();
  for (size_t i = 0; i < bucket_memory_.size(); ++i)
    if (bucket_memory_[i].use_count() == 1) sum += planned_.buckets[i].bytes;
  return sum;
}

const void* Plan::address(int value) const { return address_of(planned_.storage_of(value)); }

std::span<void* const> Plan::pointers(size_t step) const { return calls_[step].pointers; }

// Sparse rows are fetched as the dense gradient that they stand for.
void Plan::copy_fetches() {
  for (const size_t i : selected_) {
    const int value = planned_.fetches[i].value;
    const kernel::Desc& desc = planned_.value(value).desc;
    if (!fetched_[i].buffer().unique()) fetched_[i] = Tensor(desc.dtype, desc.shape);
    const void* from = address(value);
    if (desc.kind == ir::VarKind::kDense) {
      convert_layout(desc.dtype, desc.shape, from, desc.layout, fetched_[i].raw(), Layout::plain());
      continue;
    }
    const auto rows = kernel::SparseRows::at(const_cast<void*>(from), desc.rows);
    const auto width = static_cast<size_t>(desc.shape.numel(1, desc.shape.rank()));
    auto* dense = static_cast<float*>(fetched_[i].raw());
    std::memset(dense, 0, fetched_[i].bytes());
    for (int64_t r = 0; r < *rows.count; ++r)
      for (size_t c = 0; c < width; ++c)
        dense[static_cast<size_t>(rows.ids[r]) * width + c] +=
            rows.values[static_cast<size_t>(r) * width + c];
  }
}

}  // namespace fleetx::runtime
