#include "fleetx/predict/report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace fleetx::predict {
namespace {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string mib(size_t bytes) { return fixed(static_cast<double>(bytes) / (1 << 20), 1); }

void print_table(std::ostream& out, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c)
      out << (c == 0 ? std::left : std::right) << std::setw(static_cast<int>(widths[c])) << row[c]
          << (c + 1 < row.size() ? "  " : "\n");
  }
}

std::vector<std::string> memory_row(const RankKind& kind) {
  const runtime::MemoryByKind& m = kind.prediction.memory;
  return {kind.name,
          str(kind.ranks),
          mib(m.parameters),
          mib(m.state),
          mib(m.buckets + m.gradients),
          mib(m.activations),
          mib(m.scratch + m.unused + m.fetched),
          mib(kind.prediction.process_bytes),
          mib(kind.prediction.peak_bytes())};
}

std::vector<std::string> time_row(const RankKind& kind) {
  const Prediction& p = kind.prediction;
  return {kind.name,
          fixed(p.flops / 1e9, 1),
          fixed(p.links.host_bytes / 1e6, 1),
          fixed(p.links.network_bytes / 1e6, 1),
          fixed(p.seconds * 1e3, 1),
          fixed(p.time.compute_s * 1e3, 1),
          fixed(p.time.exposed_s * 1e3, 1),
          fixed(p.time.bubble_s * 1e3, 1)};
}

}  // namespace

std::string report(const std::vector<RankKind>& kinds, const Mesh& mesh, const Machine& machine,
                   int ranks_per_host) {
  std::ostringstream out;
  const int hosts = (mesh.world() + ranks_per_host - 1) / ranks_per_host;
  out << "job: " << mesh.world() << (mesh.world() == 1 ? " worker" : " workers");
  for (const Mesh::Axis& axis : mesh.axes())
    if (axis.size > 1) out << ", " << axis.name << " " << axis.size;
  out << "; " << hosts << (hosts == 1 ? " host" : " hosts") << " of " << ranks_per_host
      << (ranks_per_host == 1 ? " rank" : " ranks") << "; machine '" << machine.name << "'\n\n";

  std::vector<std::vector<std::string>> memory{{"peak MiB", "ranks", "parameters", "state",
                                                "gradients", "activations", "buffers", "process",
                                                "all"}};
  std::vector<std::vector<std::string>> time{
      {"a step", "GFLOP", "host MB", "network MB", "ms", "compute", "exposed comm", "bubbles"}};
  double most = 0;
  for (const RankKind& kind : kinds) {
    memory.push_back(memory_row(kind));
    time.push_back(time_row(kind));
    most = std::max(most, static_cast<double>(kind.prediction.peak_bytes()));
  }
  print_table(out, memory);
  out << "\n";
  print_table(out, time);
  const double needed = most * ranks_per_host;
  if (machine.memory_bytes > 0 && needed > machine.memory_bytes)
    out << "\ndoes not fit: the ranks of a host need " << mib(static_cast<size_t>(needed))
        << " MiB, " << mib(static_cast<size_t>(needed - machine.memory_bytes))
        << " MiB more than it has. What would help: sharding, recompute, amp, a smaller batch, "
           "fewer "
           "ranks on a host\n";
  return out.str();
}

}  // namespace fleetx::predict
