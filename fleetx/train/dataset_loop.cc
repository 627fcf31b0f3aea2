#include "fleetx/train/dataset_loop.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "fleetx/base/interrupt.h"
#include "fleetx/train/expected_rows.h"

namespace fleetx::train {
namespace {

using std::chrono::steady_clock;

// Of a slot whose samples have one length each, or of sequences whose elements have several values.
Tensor lengths_of(const data::SlotValues& slot, int64_t rows, int64_t per_row,
                  const DatasetInput& input) {
  if (!slot.lengths.defined()) {
    Tensor ones(DType::kI64, {rows});
    std::ranges::fill(ones.data<int64_t>(), 1);
    return ones;
  }
  if (per_row == 1) return slot.lengths;
  Tensor out(DType::kI64, slot.lengths.shape());
  std::ranges::transform(
      slot.lengths.data<int64_t>(), out.data<int64_t>().begin(), [&](int64_t length) {
        check_arg(length % per_row == 0, "slot '", input.name, "': a sample has ", length,
                  " values; they come in groups of ", per_row);
        return length / per_row;
      });
  return out;
}

}  // namespace

runtime::Feeds feeds_of(data::Samples batch, const std::vector<data::Slot>& slots,
                        const std::vector<DatasetInput>& inputs) {
  check_arg(inputs.size() == slots.size(), "the data set has ", slots.size(), " slots, use_var ",
            inputs.size(), "; load it again");
  const auto values = data::to_tensors(std::move(batch), slots);
  runtime::Feeds feeds;
  feeds.reserve(2 * inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DatasetInput& input = inputs[i];
    if (input.name.empty()) continue;
    const int64_t per_row = std::max<int64_t>(input.sample.numel(), 1);
    Shape shape{values[i].values.numel() / per_row};
    for (const int64_t d : input.sample) shape.push_back(d);
    check_arg(shape.numel() == values[i].values.numel(), "slot '", input.name,
              "': ", values[i].values.numel(), " values do not fill rows of ", input.sample);
    const int64_t rows = shape[0];
    feeds.emplace_back(input.name, values[i].values.reshaped(std::move(shape)));
    if (!input.lengths.empty())
      feeds.emplace_back(input.lengths, lengths_of(values[i], rows, per_row, input));
  }
  return feeds;
}

int64_t DatasetLoop::run(runtime::Executor& executor, const ir::Program& program,
                         runtime::Scope& scope, data::Batches& batches) const {
  check_arg(print_period > 0, "print_period is ", print_period, "; must be above 0");
  auto due = handler_due;
  ExpectedRows expected(program);
  const auto next_feeds = [&]() -> std::optional<runtime::Feeds> {
    auto batch = batches.next();
    if (!batch) return std::nullopt;
    runtime::Feeds feeds = feeds_of(std::move(*batch), batches.slots(), inputs);
    if (expected.any()) expected.tell(feeds);
    return feeds;
  };
  int64_t number = 0;
  std::optional<runtime::Feeds> next = next_feeds();
  std::exception_ptr error;  // of the next batch: the one before it counts first
  const auto read_next = [&] {
    next.reset();
    try {
      next = next_feeds();
    } catch (...) {
      error = std::current_exception();
    }
  };
  for (; next; ++number) {
    check_interrupt();
    const runtime::Feeds feeds = std::move(*next);
    if (expected.any()) read_next();
    // All are planned in every batch, so that there is one plan per batch size.
    runtime::Plan& plan = executor.plan(program, scope, feeds, fetch);
    executor.run(plan);
    if (show && !fetch.empty() && number % print_period == 0) {
      std::vector<Tensor> values;
      for (size_t i = 0; i < fetch.size(); ++i) values.push_back(plan.fetched(i));
      show(number, values);
    }
    if (handler && steady_clock::now() >= due) due = handler();
    if (!expected.any()) read_next();
    if (error) std::rethrow_exception(error);
  }
  return number;
}

}  // namespace fleetx::train
