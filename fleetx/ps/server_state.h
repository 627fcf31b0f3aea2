// All that a server knows, as of one moment, for a copy that is made again (replica.h): what is in
// its own snapshots (own_snapshot.h), and besides the pushes that wait for their step, the counts
// of ids that are not admitted yet, and who has left or is at a meeting. It has the form of a part
// (snapshot.h), and so its checksums.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fleetx/base/fd.h"
#include "fleetx/ps/own_snapshot.h"

namespace fleetx::ps {

// Where a state is while it is on its way: in memory, or in a file of the disk that tables have.
class StateFile {
 public:
  explicit StateFile(const std::string& disk);  // "": memory
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // of what was appended
  void append(std::string_view bytes);

 private:
  const bool on_disk_;
  Fd fd_;
  std::string path_;
  uint64_t size_ = 0;
};

struct ServerState {
  std::vector<WorkerProgress> workers{};
  std::vector<bool> gone{};  // each worker: it has said goodbye
  std::pair<uint64_t, uint64_t> last_shrink{};
};

// Nothing may change meanwhile.
void write_state(const std::string& path, TableService& tables, const ServerState& state);
// Into empty tables. Untrusted: damage or another job is an error.
ServerState load_state(TableService& tables, const std::string& path, int server);

// The content of one section. Untrusted.
struct MembersSection {
  std::vector<bool> gone{};
  std::vector<TableService::Member> members{};
  std::vector<bool> has_values{};  // each dense table
  std::pair<uint64_t, uint64_t> last_shrink{};
};
std::string encode(const MembersSection& members);
MembersSection decode_members(std::string_view bytes, const JobSpec& job, std::string_view path);
void parse_pending(TableService& tables, std::string_view bytes, std::string_view path);
void parse_seen(TableService& tables, std::string_view bytes, std::string_view path);

}  // namespace fleetx::ps
