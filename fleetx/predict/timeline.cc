// A predicted step for people: a file that ui.perfetto.dev and chrome://tracing open.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fleetx/base/error.h"
#include "fleetx/predict/simulate.h"

namespace fleetx::predict {

void Timeline::save(const std::string& path) const {
  std::ofstream out(path);
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  std::map<std::pair<size_t, std::string>, int> rows;
  const char* separator = "";
  for (const Span& span : spans) {
    const auto [row, is_new] =
        rows.try_emplace({span.rank, span.lane}, static_cast<int>(rows.size()) + 1);
    if (is_new) {
      const std::string title =
          span.lane == "compute" ? span.lane : str("calls of group ", span.lane);
      const nlohmann::json line = {{"name", "thread_name"},
                                   {"ph", "M"},
                                   {"pid", span.rank},
                                   {"tid", row->second},
                                   {"args", {{"name", title}}}};
      out << separator << line.dump();
      separator = ",\n";
    }
    const nlohmann::json line = {{"name", span.name},
                                 {"cat", span.lane == "compute" ? "compute" : "call"},
                                 {"ph", "X"},
                                 {"ts", span.start * 1e6},
                                 {"dur", (span.end - span.start) * 1e6},
                                 {"pid", span.rank},
                                 {"tid", row->second}};
    out << separator << line.dump();
    separator = ",\n";
  }
  out << "\n]}\n";
  out.close();
  check_arg(static_cast<bool>(out), "cannot write the time line to ", path);
}

}  // namespace fleetx::predict
