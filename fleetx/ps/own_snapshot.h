// Snapshots that a server makes for itself, so that it can go on after it was started again: its
// tables and how far its workers were, in one file (sections of snapshot.h), as of one moment.
#pragma once

#include <string>
#include <vector>

#include "fleetx/ps/table_service.h"

namespace fleetx::ps {

// What a server knows of a worker.
struct WorkerProgress {
  uint64_t start = 0, last = 0;  // number of its process; last push applied
};
struct Progress {
  std::vector<TableProgress> tables{};
  std::vector<WorkerProgress> workers{};
};

// Untrusted; for the same tables.
std::string encode(const Progress& progress);
Progress decode_progress(std::string_view bytes, const JobSpec& job, std::string_view path);

// write() copies all of it while the caller keeps pushes away; finish() waits for the disk and
// takes the place of the last snapshot. Until then that one is valid.
class OwnSnapshot {
 public:
  explicit OwnSnapshot(const std::string& path);
  ~OwnSnapshot();
  void write(TableService& tables, const std::vector<WorkerProgress>& workers);
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Into empty tables. Damage or another model is an error that names the file.
Progress load_own_snapshot(TableService& tables, const std::string& path, int server);

}  // namespace fleetx::ps
