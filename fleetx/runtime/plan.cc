#include "fleetx/runtime/plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "fleetx/base/interrupt.h"
#include "fleetx/runtime/trace.h"

namespace fleetx::runtime {
namespace {

// A kernel that meets bad data (an id out of range, a label that is no class) throws; the message
// gets the op.
[[noreturn]] void rethrow_with(const Step& step, const Error& e) {
  const std::string message = e.what();
  throw Error(e.kind(),
              message.starts_with(step.description) ? message : step.description + message);
}

std::string mib(size_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / (1 << 20) << " MiB";
  return out.str();
}

}  // namespace

std::string_view name_of(Region region) {
  constexpr std::array<std::string_view, 4> kNames{"arena", "bucket", "scope", "feed"};
  return kNames[static_cast<size_t>(region)];
}

int Plan::feed_index(std::string_view name) const {
  for (size_t i = 0; i < feeds_.size(); ++i)
    if (feeds_[i] == name) return static_cast<int>(i);
  return -1;
}

void Plan::set_feed(int index, const void* data) {
  const auto i = static_cast<size_t>(index);
  if (feed_data_[i] == data) return;
  feed_data_[i] = data;
  for (const auto& [step, position] : feed_uses_[i])
    steps_[static_cast<size_t>(step)].pointers[static_cast<size_t>(position)] =
        const_cast<void*>(data);
}

void Plan::run() {
  const Step* current = nullptr;
  try {
    for (Step& step : steps_) {
      current = &step;
      check_interrupt();
      step.kernel->run(kernel::Run(step.pointers.data()));
    }
  } catch (const Error& e) {
    rethrow_with(*current, e);
  }
  copy_fetches();
}

void Plan::run(Observer& observer) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    check_interrupt();
    const uint64_t start = trace::now_ns();
    try {
      steps_[i].kernel->run(kernel::Run(steps_[i].pointers.data()));
    } catch (const Error& e) {
      rethrow_with(steps_[i], e);
    }
    observer.after(*this, steps_[i], i, start, trace::now_ns());
  }
  copy_fetches();
}

const void* Plan::address(int value) const {
  const Storage& storage =
      storages_[static_cast<size_t>(values_[static_cast<size_t>(value)].storage)];
  switch (storage.region) {
    case Region::kArena: return static_cast<const char*>(arena_.data()) + storage.block.offset;
    case Region::kBucket:
      return static_cast<const char*>(buckets_[static_cast<size_t>(storage.bucket)].memory.get()) +
             storage.block.offset;
    case Region::kFeed: return feed_data_[static_cast<size_t>(feed_index(storage.var))];
    case Region::kScope: return held_.at(storage.var).raw();
  }
  return nullptr;
}

// Sparse rows are fetched as the dense gradient that they stand for.
void Plan::copy_fetches() {
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const kernel::Desc& desc = values_[static_cast<size_t>(fetches_[i].value)].desc;
    if (!fetched_[i].buffer().unique()) fetched_[i] = Tensor(desc.dtype, desc.shape);
    const void* from = address(fetches_[i].value);
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

size_t Plan::bucket_bytes() const {
  return std::accumulate(buckets_.begin(), buckets_.end(), size_t{0},
                         [](size_t sum, const BucketMemory& b) { return sum + b.bytes; });
}

size_t Plan::fetch_bytes() const {
  return std::accumulate(fetched_.begin(), fetched_.end(), size_t{0},
                         [](size_t sum, const Tensor& t) { return sum + t.bytes(); });
}

double Plan::flops() const {
  return std::accumulate(steps_.begin(), steps_.end(), 0.0,
                         [](double sum, const Step& step) { return sum + step.cost.flops; });
}

int Plan::reorders() const {
  return static_cast<int>(std::count_if(steps_.begin(), steps_.end(),
                                        [](const Step& step) { return step.label == "reorder"; }));
}

double Plan::seconds_to_make() const {
  double sum = 0;
  for (const passes::Report& report : passes_) sum += report.seconds;
  for (const PhaseTime& phase : phases_) sum += phase.seconds;
  return sum;
}

std::string Plan::table() const {
  std::ostringstream out;
  out << std::left << std::setw(5) << "step" << std::setw(10) << "role" << std::setw(28) << "op"
      << std::setw(36) << "first output" << std::setw(24) << "shape" << std::setw(16) << "layout"
      << std::setw(8) << "region" << std::right << std::setw(12) << "offset" << std::setw(10)
      << "MFLOP" << std::setw(10) << "MB"
      << "  "
      << "implementation\n";
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    std::string name, shape, layout, region, offset;
    if (!step.outputs.empty()) {
      const Value& value = values_[static_cast<size_t>(step.outputs.front())];
      const Storage& storage = storages_[static_cast<size_t>(value.storage)];
      name = value.var;
      shape = str(value.desc.dtype, value.desc.shape);
      layout = str(value.desc.layout);
      region = name_of(storage.region);
      const bool planned = storage.region == Region::kArena || storage.region == Region::kBucket;
      offset = planned ? str(storage.block.offset) : "-";
    }
    out << std::left << std::setw(5) << i << std::setw(10) << ir::name_of(step.role)
        << std::setw(28) << step.label << std::setw(36) << name << std::setw(24) << shape
        << std::setw(16) << layout << std::setw(8) << region << std::right << std::setw(12)
        << offset << std::fixed << std::setprecision(2) << std::setw(10) << step.cost.flops / 1e6
        << std::setw(10) << step.cost.bytes / 1e6 << "  " << step.kernel->implementation() << '\n';
  }
  out << '\n'
      << steps_.size() << " steps, " << reorders() << " reorders, " << std::setprecision(3)
      << flops() / 1e9 << " GFLOP\n";
  out << "memory: peak " << mib(peak_bytes()) << " = arena " << mib(arena_bytes_) << " (at least "
      << mib(live_bytes_) << " are alive at once) + gradient buckets " << mib(bucket_bytes())
      << " + parameters and state " << mib(scope_bytes_) << " + fetched " << mib(fetch_bytes())
      << '\n';
  out << "made in " << std::setprecision(3) << seconds_to_make() << " s:";
  for (const passes::Report& report : passes_)
    out << ' ' << report.name
        << (report.skipped ? " skipped" : str(" ", report.seconds * 1e3, " ms")) << ',';
  for (const PhaseTime& phase : phases_)
    out << ' ' << phase.name << ' ' << phase.seconds * 1e3 << " ms"
        << (&phase == &phases_.back() ? "\n" : ",");
  return out.str();
}

}  // namespace fleetx::runtime
