#include "fleetx/train/expected_rows.h"

#include <algorithm>

namespace fleetx::train {

ExpectedRows::ExpectedRows(const ir::Program& program) : servers_(kernel::current_servers()) {
  if (servers_ == nullptr) return;
  const auto is_lookup = [](const ir::Op& op) { return op.type() == "ps_pull_rows"; };
  if (std::ranges::count_if(program.ops(), is_lookup) != 1) return;
  const ir::Op& op = *std::ranges::find_if(program.ops(), is_lookup);
  const auto is_fed = [&](const std::string& name) { return program.var(name).is_data; };
  if (!std::ranges::all_of(op.in("ids"), is_fed)) return;
  for (const std::string& table : op.attr<ir::Strings>("tables"))
    tables_.push_back(servers_->table(table));
  asked_.resize(tables_.size());
  lookup_ = &op;
}

ExpectedRows::~ExpectedRows() {
  if (any()) servers_->expect_no_more();
}

void ExpectedRows::tell(const runtime::Feeds& next) {
  const auto& padding = lookup_->attr<ir::Ints>("padding");
  std::vector<kernel::Servers::Lookup> lookups;
  for (size_t k = 0; k < tables_.size(); ++k) {
    const std::string& name = lookup_->in("ids")[k];
    const auto feed = std::ranges::find(next, name, &runtime::Feeds::value_type::first);
    if (feed == next.end() || feed->second.dtype() != DType::kI64) return;
    const std::span<const int64_t> ids = feed->second.data<int64_t>();
    if (padding[k] < 0) {
      lookups.push_back({tables_[k], ids.data(), static_cast<int64_t>(ids.size()), nullptr});
      continue;
    }
    asked_[k].clear();
    std::ranges::remove_copy(ids, std::back_inserter(asked_[k]), padding[k]);
    lookups.push_back(
        {tables_[k], asked_[k].data(), static_cast<int64_t>(asked_[k].size()), nullptr});
  }
  servers_->expect_rows(lookups, !lookup_->attr<bool>("is_test"));
}

}  // namespace fleetx::train
