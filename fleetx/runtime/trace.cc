#include "fleetx/runtime/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/log.h"

namespace fleetx::runtime::trace {
namespace {

constexpr long kCallRow = 0;  // no thread has this number

struct Event {
  std::string name;
  const char* category;
  uint64_t start_ns, end_ns;
  long thread;
  std::string detail;
};

bool write(const std::string& file, std::span<const Event> events) {
  std::ofstream out(file);
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  const nlohmann::json title = {{"name", "thread_name"},
                                {"ph", "M"},
                                {"pid", static_cast<int>(getpid())},
                                {"tid", kCallRow},
                                {"args", {{"name", "calls to other ranks"}}}};
  if (std::any_of(events.begin(), events.end(),
                  [](const Event& e) { return e.thread == kCallRow; }))
    out << title.dump() << ",\n";
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = events[i];
    const nlohmann::json line = {{"name", e.name},
                                 {"cat", e.category},
                                 {"ph", "X"},
                                 {"ts", static_cast<double>(e.start_ns) / 1e3},
                                 {"dur", static_cast<double>(e.end_ns - e.start_ns) / 1e3},
                                 {"pid", static_cast<int>(getpid())},
                                 {"tid", e.thread},
                                 {"args", {{"detail", e.detail}}}};
    out << line.dump() << (i + 1 < events.size() ? ",\n" : "\n");
  }
  out << "]}\n";
  out.close();
  return static_cast<bool>(out);
}

class Collector {
 public:
  Collector() {
    const std::filesystem::path file = env::get("FLEETX_TRACE").value_or("");
    if (file.empty()) return;
    const std::string name = file.stem().string() + suffix_of_worker(".worker_");
    file_ = (file.parent_path() / (name + file.extension().string())).string();
  }
  ~Collector() { flush(); }

  bool enabled() const { return !file_.empty() || in_session_.load(std::memory_order_relaxed); }

  void add(Event event) {
    const std::scoped_lock lock(mutex_);
    events_.push_back(std::move(event));
    dirty_ = true;
  }

  void start() {
    const std::scoped_lock lock(mutex_);
    if (file_.empty()) events_.clear();
    session_begin_ = events_.size();
    in_session_ = true;
  }

  void stop(const std::string& file) {
    const std::scoped_lock lock(mutex_);
    in_session_ = false;
    const bool written = file.empty() || write(file, std::span(events_).subspan(session_begin_));
    if (file_.empty()) events_.clear();
    check_arg(written, "cannot write the trace to ", file);
  }

  void flush() {
    const std::scoped_lock lock(mutex_);
    if (!dirty_ || file_.empty()) return;
    if (!write(file_, events_)) log::error("trace", "cannot write FLEETX_TRACE=", file_);
    dirty_ = false;
  }

 private:
  std::string file_;  // of FLEETX_TRACE
  std::mutex mutex_;
  std::vector<Event> events_;
  bool dirty_ = false;
  std::atomic<bool> in_session_ = false;
  size_t session_begin_ = 0;
};

Collector& collector() {
  static Collector instance;
  return instance;
}

}  // namespace

bool enabled() { return collector().enabled(); }

uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void add(const std::string& name, const char* category, uint64_t start_ns, uint64_t end_ns,
         const std::string& detail) {
  collector().add({name, category, start_ns, end_ns, syscall(SYS_gettid), detail});
}

void add_call(const std::string& name, uint64_t start_ns, uint64_t end_ns,
              const std::string& detail) {
  collector().add({name, "call", start_ns, end_ns, kCallRow, detail});
}

void start() { collector().start(); }

void stop(const std::string& file) { collector().stop(file); }

void flush() { collector().flush(); }

}  // namespace fleetx::runtime::trace
