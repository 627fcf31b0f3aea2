#include "fleetx/fleet/served_model.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "fleetx/fleet/server_tables.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ps/snapshot.h"
#include "fleetx/strategies/parameter_server.h"

namespace fleetx::fleet {
namespace {

struct Rows {
  Tensor keys, values;
};

// All rows of a table, by ascending id.
Rows rows_of(ps::SparseTable& table) {
  std::map<uint64_t, std::vector<float>> sorted;
  table.for_each([&](uint64_t id, std::span<const float> record) {
    sorted.emplace(id, std::vector<float>(record.begin(), record.begin() + table.dim()));
  });
  // A table without rows gets one of zeros, since a tensor has elements.
  if (sorted.empty()) sorted.emplace(0, std::vector<float>(static_cast<size_t>(table.dim())));
  const auto count = static_cast<int64_t>(sorted.size());
  Rows rows{Tensor(i64, {count}), Tensor(f32, {count, table.dim()})};
  auto* key = static_cast<int64_t*>(rows.keys.raw());
  auto* value = static_cast<float*>(rows.values.raw());
  for (const auto& [id, row] : sorted) {
    *key++ = static_cast<int64_t>(id);
    value = std::copy(row.begin(), row.end(), value);
  }
  return rows;
}

void add_state(ir::Rewriter& rw, runtime::Scope& scope, const std::string& name,
               const Tensor& value) {
  ir::VarInfo info;
  info.name = name;
  info.type = {value.dtype(), value.shape()};
  info.persistable = info.stop_gradient = true;
  rw.add_var(info);
  scope.set(name, value);
}

}  // namespace

ir::Names serve_alone(ir::Program& program, runtime::Scope& scope, const ps::JobSpec& tables,
                      const std::string& folder) {
  ps::JobSpec all = tables;
  all.servers = 1;  // one that holds everything
  ps::PayloadPool pool;
  ps::TableService service(all, 0, 1, pool);
  ps::load_snapshot(service, folder, 0, ps::Content::kRows);

  strategies::look_up_on_servers(program, names_of(all.sparse));  // programs from before minimize
  ir::Rewriter rw(program);
  ir::Names made;
  for (auto op = rw.begin(); op != rw.end();) {
    if (op->type() != "ps_pull_rows") {
      ++op;
      continue;
    }
    const auto looked_up = op->attr<ir::Strings>("tables");
    const auto padding = op->attr<ir::Ints>("padding");
    for (size_t k = 0; k < looked_up.size(); ++k) {
      const std::string keys = looked_up[k] + "@KEYS", values = looked_up[k] + "@ROWS";
      if (program.find(keys) == nullptr) {
        const auto table = std::ranges::find(all.sparse, looked_up[k], &ps::SparseSpec::name);
        check_arg(table != all.sparse.end(), "the servers do not keep the table '", looked_up[k],
                  "'");
        const Rows rows =
            rows_of(*service.sparse()[static_cast<size_t>(table - all.sparse.begin())]);
        add_state(rw, scope, keys, rows.keys);
        add_state(rw, scope, values, rows.values);
        made.insert(made.end(), {keys, values});
      }
      rw.insert(op, {.type = "lookup_rows",
                     .inputs = {{"ids", {op->in("ids")[k]}}, {"keys", {keys}}, {"rows", {values}}},
                     .outputs = {{"out", {op->out("out")[k]}}},
                     .attrs = {{"padding_idx", padding[k]}},
                     .name = op->name,
                     .loc = op->loc});
    }
    op = rw.erase(op);
  }
  return made;
}

}  // namespace fleetx::fleet
