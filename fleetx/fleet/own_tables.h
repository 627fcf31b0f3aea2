// The tables of a process that trains without servers: rows by id, made on first use, as a server
// keeps them (ps/sparse_table.h), and no sockets. Dense parameters stay in the program.
#pragma once

#include <string>

#include "fleetx/fleet/parameter_state.h"
#include "fleetx/kernel/servers.h"
#include "fleetx/ps/id_batch.h"
#include "fleetx/ps/save_options.h"
#include "fleetx/ps/table_service.h"

namespace fleetx::fleet {

class OwnTables final : public kernel::Servers {
 public:
  explicit OwnTables(ps::JobSpec job, ParameterState parameters = ParameterState({}));

  const ps::JobSpec& job() const { return job_; }
  // What servers write: the rows, and the parameters as the scope has them.
  void save(const runtime::Scope& scope, const std::string& folder,
            const ps::SaveOptions& options = {});
  // The rows of a snapshot take the place of all that are here.
  void load(const std::string& folder);
  int64_t shrink(std::optional<float> threshold) { return tables_.shrink(threshold); }

  int table(std::string_view name) override;
  void pull_rows(std::span<const Lookup> lookups, bool make) override;
  void push(std::span<const Gradient> dense, std::span<const RowGradient> rows) override;
  void count(const Uses& uses) override;

  // Parameters stay in the program.
  int parameter(std::string_view name) override;
  void pull(std::span<const Value> values) override;
  void start_with(std::span<const Value> values) override;
  void exchange(std::span<const Exchange> values) override;

 private:
  ps::SparseTable& table(int index) { return *tables_.sparse()[static_cast<size_t>(index)]; }
  const std::string& name_of(int index) const {
    return job_.sparse[static_cast<size_t>(index)].name;
  }

  void count_uses();

  const ps::JobSpec job_;
  const ParameterState parameters_;
  ps::PayloadPool pool_;
  ps::TableService tables_;
  // Counted since the last push: the ids, and a pair for each.
  struct Counted {
    int table;
    std::vector<int64_t> ids;
    std::vector<float> uses;
  };
  std::vector<Counted> counted_;
  ps::IdBatch ids_;  // of the last push, as the next two: their memory is used again
  std::vector<float> sums_, scaled_;
};

}  // namespace fleetx::fleet
