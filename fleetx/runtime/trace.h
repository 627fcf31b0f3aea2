// A trace in the Chrome/Perfetto JSON format: of all runs, where FLEETX_TRACE names a file, and of
// those between start() and stop(). Open it at ui.perfetto.dev or chrome://tracing. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace fleetx::runtime::trace {

bool enabled();
uint64_t now_ns();
// One finished piece of work; `detail` is shown when it is selected.
void add(const std::string& name, const char* category, uint64_t start_ns, uint64_t end_ns,
         const std::string& detail = "");
// The same of a call to other ranks, which has a row of its own.
void add_call(const std::string& name, uint64_t start_ns, uint64_t end_ns,
              const std::string& detail);
void start();
// Writes what came since start(), unless `file` is empty.
void stop(const std::string& file);
// Writes what was collected so far for FLEETX_TRACE. Called when an executor ends and at exit.
void flush();

}  // namespace fleetx::runtime::trace
