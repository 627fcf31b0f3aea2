// Snapshots of tables on disk. Each server writes one part; any number of servers can load them all
// and keep what is theirs.
//
//   FOLDER/snapshot               text: "fleetx-ps 1 NUMBER PARTS"; written last: which are valid
//   FOLDER/NUMBER-0-of-2.part     what server 0 of 2 held
//
// A base is a snapshot from which on servers count what changes; a delta has what has changed since
// the last base, in the same folder: "fleetx-ps 2 NUMBER PARTS DELTA PARTS", and DELTA-0-of-2.delta
// beside the parts. Loading takes both. A newer delta takes the place of the last one.
//
// A part is a sequence of sections of at most some MB, each with its length and a checksum:
//   u32 tag, u64 bytes, u64 checksum of the content, content
// and ends with an empty section of tag `end`; a file without it is incomplete. Values are f32 and
// ids u64, little-endian.
//   dense    name of the parameter, its elements in all, begin, count, number of states, number of
//            scalars; scalars, values, states
//   sparse   name of the table, dim, number of states, number of scalars, rows; scalars, ids,
//            records
//   sparse with uses   the same of a table with statistics (row_life.h): its last scalar is the
//            day, and a record ends with the row's statistics
//   gone     name of the table, ids; of a delta, before the rows: they were dropped
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "fleetx/base/file.h"
#include "fleetx/ps/save_options.h"
#include "fleetx/ps/table_service.h"

namespace fleetx::ps {

// kInvalidArgument: a delta where the folder does not have this server's last base. A process
// without servers keeps its parameters elsewhere: `parameters` has them, and is saved beside.
void save_part(TableService& tables, const std::string& folder, uint64_t number, int server,
               const SaveOptions& options = {}, TableService* parameters = nullptr);
// All parts are there: the snapshot becomes valid, and parts of earlier ones are removed. Called
// for one server, after all have saved.
void commit_snapshot(const std::string& folder, uint64_t number, int servers,
                     SaveOptions::Mode mode = SaveOptions::Mode::kAll);
// The parts of a save that has failed go: they may be all that a full disk has room for.
void discard_parts(const std::string& folder, uint64_t number, int servers, SaveOptions::Mode mode);
// What of a snapshot is loaded; the rest is passed over.
enum class Content : uint8_t { kAll, kRows };
// Damage, a missing part or another model is an error that names the file. A folder without a
// snapshot may have tables as text (text_tables.h).
void load_snapshot(TableService& tables, const std::string& folder, int server,
                   Content content = Content::kAll);
// A block of a parameter or a row of a table, as a snapshot has it.
struct SavedRecord {
  std::string_view name, path;
  bool is_row = false;
  uint64_t begin = 0;  // its first element of the parameter; of a row, the id
  uint64_t width = 0;  // elements
  uint64_t numel = 0;  // of the whole parameter; of a row, its width
  uint32_t states = 0, scalars = 0;
  // f32, not aligned: values and states of `width` each. A row that was dropped has none.
  std::string_view values{}, scalar_values{};
};
// All of a folder, in the order in which later ones replace earlier ones. Untrusted.
void read_records(const std::string& folder, const std::function<void(const SavedRecord&)>& visit);

// kProgress: only in a server's own snapshots (own_snapshot.h); the last three: only in what a
// server gives its copy (server_state.h).
enum class Section : uint32_t {
  kEnd,
  kDense,
  kSparse,
  kProgress,
  kSparseWithUses,
  kGone,
  kMembers,
  kPending,
  kSeen,
};
class PartWriter {
 public:
  explicit PartWriter(const std::string& path) : file_(path) {}
  void write(Section section, std::string_view content);
  void finish();  // on disk when it returns

 private:
  FileWriter file_;
};
void write_tables(PartWriter& file, TableService& tables,
                  SaveOptions::Mode mode = SaveOptions::Mode::kAll);

// Takes the sections of a part apart: visit(tag, content). Untrusted.
using VisitSection = std::function<void(Section section, std::string_view content)>;
void read_part(const std::string& path, const VisitSection& visit);
// How many values of dense blocks were taken.
uint64_t parse_section(TableService& tables, int server, Section section, std::string_view content,
                       std::string_view path);

}  // namespace fleetx::ps
