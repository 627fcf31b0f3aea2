#include "fleetx/fleet/own_tables.h"

#include <algorithm>
#include <utility>

#include "fleetx/base/threads.h"
#include "fleetx/ps/identity.h"
#include "fleetx/ps/snapshot.h"

namespace fleetx::fleet {

OwnTables::OwnTables(ps::JobSpec job, ParameterState parameters)
    : job_((job.check(), std::move(job))),
      parameters_(std::move(parameters)),
      tables_(job_, 0, num_threads(), pool_) {}

void OwnTables::save(const runtime::Scope& scope, const std::string& folder,
                     const ps::SaveOptions& options) {
  const uint64_t number = ps::random_number();
  parameters_.with_table(scope, [&](ps::TableService& parameters) {
    ps::save_part(tables_, folder, number, 0, options, &parameters);
  });
  ps::commit_snapshot(folder, number, 1, options.mode);
}

void OwnTables::load(const std::string& folder) {
  for (const auto& table : tables_.sparse()) table->drop([](auto, auto) { return false; });
  ps::load_snapshot(tables_, folder, 0, ps::Content::kRows);
}

int OwnTables::table(std::string_view name) {
  const auto it = std::ranges::find(job_.sparse, name, &ps::SparseSpec::name);
  check_arg(it != job_.sparse.end(), "this process does not keep the table '", name,
            "': the program was made by another minimize than the last one");
  return static_cast<int>(it - job_.sparse.begin());
}

void OwnTables::pull_rows(std::span<const Lookup> lookups, bool make) {
  for (const Lookup& l : lookups) {
    const std::span ids(l.ids, static_cast<size_t>(l.count));
    for (const int64_t id : ids)
      check_arg(id >= 0, "table '", name_of(l.table), "': id ", id, " is negative");
    table(l.table).pull({reinterpret_cast<const uint64_t*>(ids.data()), ids.size()}, l.rows,
                        make ? ps::Absent::kMake : ps::Absent::kZero);
  }
}

void OwnTables::push(std::span<const Gradient> dense, std::span<const RowGradient> rows) {
  FLEETX_CHECK(dense.empty(), "parameters stay in the program");
  for (const RowGradient& g : rows) {
    ids_.assign(std::span(g.ids, static_cast<size_t>(g.count)), 1);
    const auto dim = static_cast<size_t>(table(g.table).dim());
    sums_.assign(ids_.unique().size() * dim, 0.0f);
    // Rounded before they are added, as on their way to a server.
    scaled_.clear();
    if (g.scale != 1.0f)
      for (size_t i = 0; i < ids_.places().size() * dim; ++i)
        scaled_.push_back(g.values[i] * g.scale);
    ps::add_rows(ids_.places(), scaled_.empty() ? g.values : scaled_.data(), sums_.data(),
                 table(g.table).dim());
    table(g.table).push(ids_.unique(), sums_.data(), g.lr);
  }
  count_uses();
}

void OwnTables::count(const Uses& u) {
  Counted counted{u.table, {u.ids.begin(), u.ids.end()}, {}};
  for (size_t i = 0; i < u.ids.size(); ++i) {
    counted.uses.push_back(u.shows[i]);
    counted.uses.push_back(u.clicks[i]);
  }
  counted_.push_back(std::move(counted));
}

// After the push, which may have made the rows.
void OwnTables::count_uses() {
  for (const Counted& counted : std::exchange(counted_, {})) {
    const ps::IdBatch ids(counted.ids, 1);
    std::vector<float> sums(2 * ids.unique().size());
    for (size_t i = 0; i < ids.places().size(); ++i)
      for (size_t k = 0; k < 2; ++k) sums[2 * ids.places()[i] + k] += counted.uses[2 * i + k];
    table(counted.table).count(ids.unique(), sums.data());
  }
}

int OwnTables::parameter(std::string_view name) {
  fail(Error::Kind::kInternal, str("parameter '", name, "' stays in the program"));
}
void OwnTables::pull(std::span<const Value> values) { FLEETX_CHECK(values.empty()); }
void OwnTables::start_with(std::span<const Value> values) { FLEETX_CHECK(values.empty()); }
void OwnTables::exchange(std::span<const Exchange> values) { FLEETX_CHECK(values.empty()); }

}  // namespace fleetx::fleet
