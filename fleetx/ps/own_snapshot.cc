#include "fleetx/ps/own_snapshot.h"

#include <filesystem>
#include <optional>

#include "fleetx/ps/snapshot.h"

namespace fleetx::ps {

namespace fs = std::filesystem;

std::string encode(const Progress& progress) {
  std::string out;
  wire::put(out, static_cast<uint32_t>(progress.tables.size()));
  for (const TableProgress& t : progress.tables) {
    wire::put(out, t.applied);
    wire::put_numbers(out, t.pushed);
  }
  wire::put(out, static_cast<uint32_t>(progress.workers.size()));
  for (const WorkerProgress& w : progress.workers) {
    wire::put(out, w.start);
    wire::put(out, w.last);
  }
  return out;
}

Progress decode_progress(std::string_view bytes, const JobSpec& job, std::string_view path) {
  wire::Cursor in(bytes, path);
  Progress progress;
  const auto workers = static_cast<size_t>(job.workers);
  progress.tables.resize(in.count(8 + 4));
  for (TableProgress& t : progress.tables) {
    t.applied = in.number<uint64_t>();
    t.pushed = in.numbers();
    check_arg(t.pushed.size() == workers, path, ": a snapshot of a job with ", t.pushed.size(),
              " workers, not ", workers);
  }
  progress.workers.resize(in.count(8 + 8));
  for (WorkerProgress& w : progress.workers) {
    w.start = in.number<uint64_t>();
    w.last = in.number<uint64_t>();
  }
  in.finish();
  check_arg(progress.workers.size() == workers &&
                progress.tables.size() == job.dense.size() + job.sparse.size(),
            path, ": it is a snapshot of another job");
  return progress;
}

class OwnSnapshot::Impl {
 public:
  explicit Impl(const std::string& p) : path(p), file(p + ".new") {}
  ~Impl() {
    std::error_code ignored;
    if (!finished) fs::remove(path + ".new", ignored);
  }
  const std::string path;
  PartWriter file;
  bool finished = false;
};

OwnSnapshot::OwnSnapshot(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
OwnSnapshot::~OwnSnapshot() = default;

void OwnSnapshot::write(TableService& tables, const std::vector<WorkerProgress>& workers) {
  impl_->file.write(Section::kProgress, encode({tables.progress(), workers}));
  write_tables(impl_->file, tables);
}

void OwnSnapshot::finish() {
  impl_->file.finish();
  fs::rename(impl_->path + ".new", impl_->path);
  impl_->finished = true;
  sync_folder(fs::path(impl_->path).parent_path().string());
}

Progress load_own_snapshot(TableService& tables, const std::string& path, int server) {
  check_arg(fs::exists(path), "there is no snapshot ", path, " to go on from");
  std::optional<Progress> progress;
  read_part(path, [&](Section section, std::string_view content) {
    if (section == Section::kProgress)
      progress = decode_progress(content, tables.job(), path);
    else
      parse_section(tables, server, section, content, path);
  });
  check_file(progress.has_value(), path, ": it does not say how far the workers were");
  for (auto& table : tables.dense()) {
    const std::scoped_lock lock(table->mutex);
    table->values.mark_set();  // only then are snapshots made
  }
  tables.restore(progress->tables);
  return *std::move(progress);
}

}  // namespace fleetx::ps
