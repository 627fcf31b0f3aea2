#include "fleetx/ps/stats.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "fleetx/base/error.h"
#include "fleetx/ps/wire.h"

namespace fleetx::ps {

void RateMeter::measure(int64_t count) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - measured_).count();
  if (seconds < 1) return;
  rate_ = static_cast<double>(count - counted_) / seconds;
  measured_ = now;
  counted_ = count;
}

std::string encode(const ServerStats& s) {
  std::string out;
  for (const int64_t n : {s.server, s.servers, s.pulls, s.pushes, s.repeated, s.bytes_in,
                          s.bytes_out, s.memory_used, s.memory_budget})
    wire::put(out, n);
  for (const double x : {s.seconds, s.pulls_per_second, s.pushes_per_second}) wire::put(out, x);
  wire::put(out, static_cast<uint32_t>(s.tables.size()));
  for (const TableStats& t : s.tables) {
    wire::put_text(out, t.name);
    for (const int64_t n : {t.rows, t.resident, t.bytes, t.version, t.pulled, t.pushed, t.waiting})
      wire::put(out, n);
  }
  wire::put(out, static_cast<uint32_t>(s.workers.size()));
  for (const WorkerStats& w : s.workers) {
    wire::put(out, w.worker);
    wire::put_text(out, w.state);
    wire::put(out, w.sequence);
    wire::put(out, w.silent_seconds);
  }
  return out;
}

ServerStats decode_stats(std::string_view bytes) {
  wire::Cursor in(bytes, "statistics of a parameter server");
  ServerStats s;
  for (int64_t* n : {&s.server, &s.servers, &s.pulls, &s.pushes, &s.repeated, &s.bytes_in,
                     &s.bytes_out, &s.memory_used, &s.memory_budget})
    *n = in.number<int64_t>();
  for (double* x : {&s.seconds, &s.pulls_per_second, &s.pushes_per_second})
    *x = in.number<double>();
  s.tables.resize(in.count(4 + 7 * 8));
  for (TableStats& t : s.tables) {
    t.name = in.text();
    for (int64_t* n :
         {&t.rows, &t.resident, &t.bytes, &t.version, &t.pulled, &t.pushed, &t.waiting})
      *n = in.number<int64_t>();
  }
  s.workers.resize(in.count(8 + 4 + 8 + 8));
  for (WorkerStats& w : s.workers) {
    w.worker = in.number<int64_t>();
    w.state = in.text();
    w.sequence = in.number<int64_t>();
    w.silent_seconds = in.number<double>();
  }
  in.finish();
  return s;
}

std::string to_text(const ServerStats& s) {
  std::vector<int64_t> pushes;  // of those that train
  for (const WorkerStats& w : s.workers)
    if (w.state == "connected") pushes.push_back(w.sequence);
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << "server " << s.server << " of " << s.servers
      << ", up " << s.seconds << " s: " << s.pulls << " pulls (" << s.pulls_per_second << "/s), "
      << s.pushes << " pushes (" << s.pushes_per_second << "/s, " << s.repeated << " sent again), "
      << static_cast<double>(s.bytes_in) / 1e6 << " MB in, "
      << static_cast<double>(s.bytes_out) / 1e6 << " MB out";
  if (s.memory_budget > 0)
    out << ", memory " << static_cast<double>(s.memory_used) / 1e6 << " of "
        << static_cast<double>(s.memory_budget) / 1e6 << " MB";
  if (pushes.size() > 1)
    out << ", workers are " << std::ranges::max(pushes) - std::ranges::min(pushes)
        << " pushes apart";
  out << "\n";
  for (const TableStats& t : s.tables)
    out << "  table " << t.name << ": " << t.rows << " rows"
        << (t.resident < t.rows ? str(" (", t.resident, " in memory)") : "") << ", "
        << static_cast<double>(t.bytes) / 1e6 << " MB, version " << t.version << ", " << t.pulled
        << " pulled, " << t.pushed << " pushed, " << t.waiting << " pulls waiting\n";
  for (const WorkerStats& w : s.workers)
    out << "  worker " << w.worker << ": " << w.state << ", " << w.sequence
        << " pushes, last heard of " << w.silent_seconds << " s ago\n";
  return out.str();
}

}  // namespace fleetx::ps
