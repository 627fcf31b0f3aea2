#include "fleetx/ps/job_spec.h"

#include <set>
#include <sstream>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"

namespace fleetx::ps {
namespace {

constexpr int64_t kMaxDim = 1 << 20;
constexpr int kMaxProcesses = 1 << 20;

}  // namespace

void JobSpec::check() const {
  check_arg(workers > 0 && workers <= kMaxProcesses, "a job with ", workers, " workers");
  check_arg(servers > 0 && servers <= kMaxProcesses, "a job with ", servers, " servers");
  check_arg(staleness >= -1, "staleness is ", staleness,
            "; expected a number of steps, or -1 for any");
  check_arg(mode == Mode::kAsync || staleness == -1,
            "staleness bounds how far workers may be apart; in sync mode they never are");
  check_arg(mode == Mode::kAsync || !delay_compensated,
            "delays are compensated in async mode; in sync mode there are none");
  std::set<std::string> names;
  const auto check_name = [&](const std::string& name) {
    check_arg(!name.empty(), "a table without a name");
    check_arg(names.insert(name).second, "two tables are called '", name, "'");
  };
  for (const DenseSpec& table : dense) {
    check_name(table.name);
    for (const DenseParam& p : table.params)
      check_arg(p.rule != nullptr, "dense table '", table.name, "': parameter '", p.name,
                "' has no update rule");
  }
  for (const SparseSpec& table : sparse) {
    check_name(table.name);
    check_arg(table.rule != nullptr, "sparse table '", table.name, "' has no update rule");
    check_arg(table.dim > 0 && table.dim <= kMaxDim, "sparse table '", table.name, "' has rows of ",
              table.dim, " values; expected 1 to ", kMaxDim);
    check_arg(table.min_count >= 1, "sparse table '", table.name, "': min_count is ",
              table.min_count, "; expected 1 or more");
    check_arg(table.probability > 0 && table.probability <= 1, "sparse table '", table.name,
              "': probability is ", table.probability, "; expected more than 0 and at most 1");
    if (table.life) table.life->check(table.name);
  }
}

std::string JobSpec::text() const {
  std::ostringstream out;
  out.precision(17);
  out << workers << " workers, " << servers << " servers, "
      << (mode == Mode::kSync ? "sync" : "async") << ", staleness " << staleness
      << (delay_compensated ? ", delays compensated" : "") << ", slices " << slicing.slice_var_up
      << " from " << slicing.min_block_size << ", "
      << (slicing.dispatch == Dispatch::kRoundRobin ? "round robin" : "hash of names") << "\n";
  for (const DenseSpec& table : dense) {
    out << "dense " << table.name << "\n";
    for (const DenseParam& p : table.params)
      out << "  " << p.name << " " << p.shape << " " << p.rule->text() << "\n";
  }
  for (const SparseSpec& table : sparse)
    out << "sparse " << table.name << " " << table.dim << " " << table.rule->text() << " "
        << table.initializer.text() << " min_count " << table.min_count << " probability "
        << table.probability << (table.life ? " life " + table.life->text() : "") << "\n";
  out << computed;
  return out.str();
}

std::string first_difference(const std::string& server, const std::string& worker) {
  std::istringstream left(server), right(worker);
  std::string x, y;
  for (;;) {
    const bool more_left = !!std::getline(left, x), more_right = !!std::getline(right, y);
    if (!more_left && !more_right) return "";
    if (!more_left) x = "(nothing)";
    if (!more_right) y = "(nothing)";
    if (x != y) return str("server: ", x, "\nworker: ", y);
  }
}

uint64_t JobSpec::fingerprint() const { return stable_hash(text()); }

std::vector<std::vector<Block>> JobSpec::blocks() const {
  std::vector<NamedShape> all;
  std::vector<std::pair<size_t, size_t>> owner;  // table and parameter of each
  for (size_t t = 0; t < dense.size(); ++t)
    for (size_t p = 0; p < dense[t].params.size(); ++p) {
      all.push_back({dense[t].params[p].name, dense[t].params[p].shape});
      owner.emplace_back(t, p);
    }
  std::vector<std::vector<Block>> blocks(dense.size());
  for (Block& block : slice(all, servers, slicing)) {
    const auto [table, param] = owner[block.param];
    block.param = param;
    blocks[table].push_back(std::move(block));
  }
  return blocks;
}

}  // namespace fleetx::ps
