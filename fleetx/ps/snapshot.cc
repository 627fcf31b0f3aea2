#include "fleetx/ps/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <unordered_set>

#include "fleetx/base/checksum.h"
#include "fleetx/ps/text_tables.h"

namespace fleetx::ps {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "snapshot", kFormat = "fleetx-ps";
constexpr uint64_t kMaxSection = uint64_t{1} << 32;
constexpr size_t kSparseBytes = size_t{4} << 20;  // of a section
constexpr size_t kSectionHeader = 4 + 8 + 8;
constexpr std::string_view kPart = ".part", kDelta = ".delta";

using Save = SaveOptions::Mode;

std::string part_name(uint64_t number, int server, int servers, std::string_view extension) {
  std::ostringstream name;
  name << std::hex << number << std::dec << "-" << server << "-of-" << servers << extension;
  return name.str();
}

void put_floats(std::string& out, std::span<const float> values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void write_dense(PartWriter& file, TableService::Dense& table) {
  const std::scoped_lock lock(table.mutex);
  if (!table.values.is_set()) return;
  for (const DenseTable::Entry& e : table.values.entries()) {
    const DenseParam& param = table.spec.params[e.block.param];
    std::string content;
    wire::put_text(content, param.name);
    wire::put(content, static_cast<uint64_t>(param.shape.numel()));
    wire::put(content, static_cast<uint64_t>(e.block.begin));
    wire::put(content, static_cast<uint64_t>(e.block.size()));
    const size_t n = static_cast<size_t>(e.block.size());
    wire::put(content,
              static_cast<uint32_t>(n == 0 ? e.rule->states().size() : e.record.size() / n - 1));
    wire::put(content, static_cast<uint32_t>(e.scalars.size()));
    put_floats(content, e.scalars);
    put_floats(content, e.record);
    file.write(Section::kDense, content);
  }
}

void write_gone(PartWriter& file, const SparseSpec& spec, std::vector<uint64_t>& ids) {
  std::string content;
  wire::put_text(content, spec.name);
  wire::put_numbers(content, ids);
  file.write(Section::kGone, content);
  ids.clear();
}

void write_sparse(PartWriter& file, const SparseSpec& spec, SparseTable& table, Save mode) {
  const std::vector<float> scalars = table.scalars();
  const auto record = static_cast<size_t>(table.record_floats());
  const size_t uses = spec.life ? kUseFloats : 0;
  const size_t most = std::max<size_t>(1, kSparseBytes / (8 + 4 * record));
  std::vector<uint64_t> ids;
  std::vector<float> records;
  bool written = false;
  const auto flush = [&] {
    std::string content;
    content.reserve(64 + ids.size() * (8 + 4 * record));
    wire::put_text(content, spec.name);
    wire::put(content, static_cast<uint64_t>(table.dim()));
    wire::put(content,
              static_cast<uint32_t>((record - uses) / static_cast<size_t>(table.dim()) - 1));
    wire::put(content, static_cast<uint32_t>(scalars.size()));
    wire::put(content, static_cast<uint64_t>(ids.size()));
    put_floats(content, scalars);
    content.append(reinterpret_cast<const char*>(ids.data()), ids.size() * 8);
    put_floats(content, records);
    file.write(spec.life ? Section::kSparseWithUses : Section::kSparse, content);
    ids.clear();
    records.clear();
    written = true;
  };
  const auto visit = [&](uint64_t id, std::span<const float> r) {
    ids.push_back(id);
    records.insert(records.end(), r.begin(), r.end());
    if (ids.size() == most) flush();
  };
  if (mode == Save::kAll) table.for_each(visit);
  if (mode == Save::kBase) table.begin_base(visit);
  std::vector<uint64_t> gone;
  if (mode == Save::kDelta) {
    // Those that are gone come first, wherever they are: one that was made again is a row, too.
    table.for_each_change([](auto, auto) {},
                          [&](uint64_t id) {
                            gone.push_back(id);
                            if (gone.size() * sizeof id >= kSparseBytes)
                              write_gone(file, spec, gone);
                          });
    if (!gone.empty()) write_gone(file, spec, gone);
    table.for_each_change(visit, [](uint64_t) {});
  }
  if (!ids.empty() || !written) flush();  // an empty table has scalars, too
}

SavedRecord read_dense(wire::Cursor& in, std::string& name, std::string_view path) {
  name = in.text();
  SavedRecord r{.name = name, .path = path};
  r.numel = in.number<uint64_t>();
  r.begin = in.number<uint64_t>();
  r.width = in.number<uint64_t>();
  r.states = in.number<uint32_t>();
  r.scalars = in.number<uint32_t>();
  check_file(r.begin <= r.numel && r.width <= r.numel - r.begin && r.width < kMaxSection &&
                 r.states < 64 && r.scalars < 64,
             path, ": parameter '", name, "': a block of impossible size");
  r.scalar_values = in.take(r.scalars * sizeof(float));
  r.values = in.take(r.width * (1 + r.states) * sizeof(float));
  in.finish();
  return r;
}

uint64_t load_dense(TableService& tables, wire::Cursor& in, std::string_view path) {
  std::string name;
  const SavedRecord saved = read_dense(in, name, path);
  const uint64_t numel = saved.numel, begin = saved.begin, count = saved.width;
  const uint32_t states = saved.states, scalars = saved.scalars;
  bool known = false;
  uint64_t taken = 0;
  for (auto& table : tables.dense()) {
    const std::scoped_lock lock(table->mutex);
    for (const DenseParam& param : table->spec.params) {
      if (param.name != name) continue;
      known = true;
      check_arg(static_cast<uint64_t>(param.shape.numel()) == numel, path, ": parameter '", name,
                "' has ", numel, " elements, in this job ", param.shape.numel(), " ", param.shape,
                ": it is a snapshot of another model");
    }
    for (DenseTable::Entry& e : table->values.entries()) {
      if (table->spec.params[e.block.param].name != name) continue;
      check_arg(e.rule->states().size() == states && e.scalars.size() == scalars, path,
                ": parameter '", name, "' was trained by another optimizer: ", states,
                " states and ", scalars, " scalars, in this job ", e.rule->states().size(), " and ",
                e.scalars.size());
      const auto from = std::max<uint64_t>(begin, static_cast<uint64_t>(e.block.begin));
      const auto to = std::min<uint64_t>(begin + count, static_cast<uint64_t>(e.block.end));
      if (from >= to) continue;
      taken += to - from;
      std::ranges::copy(saved.scalar_values, reinterpret_cast<char*>(e.scalars.data()));
      for (uint64_t s = 0; s <= states; ++s)
        std::memcpy(e.record.data() + s * static_cast<uint64_t>(e.block.size()) + from -
                        static_cast<uint64_t>(e.block.begin),
                    saved.values.data() + (s * count + from - begin) * sizeof(float),
                    (to - from) * sizeof(float));
    }
  }
  check_arg(known, path, ": parameter '", name,
            "' is not in this job: it is a snapshot of another model");
  return taken;
}

struct SparseHeader {
  std::string name;
  uint64_t dim = 0, rows = 0;
  uint32_t states = 0, scalars = 0;
  size_t record(Section section) const {  // floats
    return dim * (1 + states) + (section == Section::kSparseWithUses ? kUseFloats : 0);
  }
};

SparseHeader read_sparse_header(wire::Cursor& in, std::string_view path) {
  SparseHeader h;
  h.name = in.text();
  h.dim = in.number<uint64_t>();
  h.states = in.number<uint32_t>();
  h.scalars = in.number<uint32_t>();
  h.rows = in.number<uint64_t>();
  check_file(
      h.dim > 0 && h.dim < kMaxSection && h.states < 64 && h.scalars < 64 && h.rows < kMaxSection,
      path, ": table '", h.name, "': a section of impossible size");
  return h;
}

// Statistics that the snapshot does not have begin now; those that the job does not want are left
// out.
void load_sparse(TableService& tables, int server, Section section, wire::Cursor& in,
                 std::string_view path) {
  const bool has_uses = section == Section::kSparseWithUses;
  const SparseHeader header = read_sparse_header(in, path);
  const auto& [name, dim, rows, states, scalars] = header;
  const JobSpec& job = tables.job();
  const auto spec = std::ranges::find(job.sparse, name, &SparseSpec::name);
  check_arg(spec != job.sparse.end(), path, ": sparse table '", name,
            "' is not in this job: it is a snapshot of another model");
  SparseTable& table = *tables.sparse()[static_cast<size_t>(spec - job.sparse.begin())];
  check_arg(static_cast<uint64_t>(spec->dim) == dim, path, ": sparse table '", name,
            "' has rows of ", dim, " values, in this job ", spec->dim,
            ": it is a snapshot of another model");
  std::vector<float> now = table.scalars();
  const size_t rule_scalars = spec->rule->scalars().size(), day = has_uses ? 1 : 0;
  check_file(scalars >= day, path, ": sparse table '", name, "' has statistics, but no day");
  const size_t own_states = spec->rule->states().size();
  check_arg(states == own_states && scalars == rule_scalars + day, path, ": sparse table '", name,
            "' was trained by another optimizer: ", states, " states and ", scalars - day,
            " scalars, in this job ", own_states, " and ", rule_scalars);
  const std::string_view scalar_bytes = in.take(scalars * sizeof(float));
  std::ranges::copy(scalar_bytes.substr(0, now.size() * sizeof(float)),
                    reinterpret_cast<char*>(now.data()));
  const size_t record = header.record(section);
  const std::string_view ids = in.take(rows * 8), records = in.take(rows * record * sizeof(float));
  in.finish();
  table.set_scalars(now);
  std::vector<float> row(static_cast<size_t>(table.record_floats()));
  if (spec->life && !has_uses) row.back() = now.back();  // seen today
  const size_t taken = std::min(row.size(), record);
  for (uint64_t r = 0; r < rows; ++r) {
    uint64_t id = 0;
    std::memcpy(&id, ids.data() + 8 * r, 8);
    if (server_of(id, job.servers) != server) continue;
    std::memcpy(row.data(), records.data() + r * record * sizeof(float), taken * sizeof(float));
    table.put(id, row);
  }
}

void load_gone(TableService& tables, wire::Cursor& in, std::string_view path) {
  const std::string name = in.text();
  const std::vector<uint64_t> all = in.numbers();
  in.finish();
  const std::unordered_set<uint64_t> ids(all.begin(), all.end());
  const auto& specs = tables.job().sparse;
  const auto spec = std::ranges::find(specs, name, &SparseSpec::name);
  check_arg(spec != specs.end(), path, ": sparse table '", name,
            "' is not in this job: it is a snapshot of another model");
  tables.sparse()[static_cast<size_t>(spec - specs.begin())]->drop(
      [&](uint64_t id, auto) { return !ids.contains(id); });
}

bool has_snapshot(const std::string& folder) { return fs::exists(fs::path(folder) / kManifest); }

struct Manifest {
  uint64_t number = 0;
  int parts = 0;
  uint64_t delta = 0;
  int delta_parts = 0;  // 0: there is none
};

Manifest read_manifest(const std::string& folder) {
  const std::string path = (fs::path(folder) / kManifest).string();
  check_arg(fs::exists(path), "there is no snapshot of parameter servers in ", folder, ": ", path,
            " is missing");
  std::istringstream text(read_file(path, 4096));
  std::string format;
  int version = 0;
  Manifest m;
  text >> format >> version >> std::hex >> m.number >> std::dec >> m.parts;
  if (version == 2) text >> std::hex >> m.delta >> std::dec >> m.delta_parts;
  check_file(text && format == kFormat && (version == 1 || version == 2) && m.parts > 0 &&
                 (version == 1 || m.delta_parts > 0),
             path, ": not a snapshot of this version");
  return m;
}

// visit(section, content, path, whether it is of the delta) for all of a snapshot, the base first.
template <class Visit>
void for_each_section(const std::string& folder, const Visit& visit) {
  const Manifest m = read_manifest(folder);
  const auto read = [&](uint64_t number, int parts, std::string_view extension) {
    for (int part = 0; part < parts; ++part) {
      const std::string path =
          (fs::path(folder) / part_name(number, part, parts, extension)).string();
      check_arg(fs::exists(path), "snapshot ", folder, ": part ", part, " of ", parts,
                " is missing (", path, ")");
      read_part(path, [&](Section section, std::string_view content) {
        visit(section, content, path, extension == kDelta);
      });
    }
  };
  read(m.number, m.parts, kPart);
  if (m.delta_parts > 0) read(m.delta, m.delta_parts, kDelta);
}

void write_manifest(const std::string& folder, const Manifest& m) {
  std::ostringstream text;
  text << kFormat << (m.delta_parts > 0 ? " 2 " : " 1 ") << std::hex << m.number << std::dec << " "
       << m.parts;
  if (m.delta_parts > 0) text << " " << std::hex << m.delta << std::dec << " " << m.delta_parts;
  text << "\n";
  const std::string path = (fs::path(folder) / kManifest).string();
  write_file(path + ".new", text.str());
  fs::rename(path + ".new", path);
}

}  // namespace

void PartWriter::write(Section section, std::string_view content) {
  std::string header;
  wire::put(header, section);
  wire::put(header, static_cast<uint64_t>(content.size()));
  wire::put(header, word_checksum(content));
  file_.write(header);
  file_.write(content);
}

void PartWriter::finish() {
  write(Section::kEnd, {});
  file_.finish();
}

void write_tables(PartWriter& file, TableService& tables, Save mode) {
  for (auto& table : tables.dense()) write_dense(file, *table);
  for (size_t t = 0; t < tables.sparse().size(); ++t)
    write_sparse(file, tables.job().sparse[t], *tables.sparse()[t], mode);
}

void save_part(TableService& tables, const std::string& folder, uint64_t number, int server,
               const SaveOptions& options, TableService* parameters) {
  std::error_code error;
  fs::create_directories(folder, error);
  check_arg(!error, "cannot make the folder ", folder, ": ", error.message());
  const bool is_delta = options.mode == Save::kDelta;
  if (is_delta) {
    check_arg(
        tables.base != 0 && has_snapshot(folder) && read_manifest(folder).number == tables.base,
        "a delta has what has changed since the last base, which is ",
        tables.base == 0 ? "none since this server was started" : "not the one in this folder",
        " (", folder, "); save a base there first (mode=2)");
  }
  if (options.mode == Save::kBase) tables.base = 0;  // until it is complete
  const std::string name =
      part_name(number, server, tables.job().servers, is_delta ? kDelta : kPart);
  PartWriter file((fs::path(folder) / name).string());
  write_tables(file, tables, options.mode);
  if (parameters != nullptr) write_tables(file, *parameters);
  file.finish();
  if (options.text) save_text(tables, folder, server);
  if (options.mode == Save::kBase) tables.base = number;
}

void commit_snapshot(const std::string& folder, uint64_t number, int servers, Save mode) {
  const bool is_delta = mode == Save::kDelta;
  const std::string_view extension = is_delta ? kDelta : kPart;
  std::set<std::string> parts;
  for (int s = 0; s < servers; ++s) {
    const std::string name = part_name(number, s, servers, extension);
    check_arg(fs::exists(fs::path(folder) / name), "snapshot ", folder, ": ", name,
              " is missing; servers on several hosts need a folder that all of them see");
    parts.insert(name);
  }
  Manifest m{.number = number, .parts = servers};
  if (is_delta) {
    m = read_manifest(folder);
    m.delta = number;
    m.delta_parts = servers;
  }
  try {
    write_manifest(folder, m);
  } catch (const std::exception&) {
    discard_parts(folder, number, servers, mode);
    throw;
  }
  sync_folder(folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_part = entry.path().extension() == kPart && !is_delta;
    if ((is_part || entry.path().extension() == kDelta) &&
        !parts.contains(entry.path().filename().string()))
      fs::remove(entry.path());
  }
}

void discard_parts(const std::string& folder, uint64_t number, int servers, Save mode) {
  std::error_code ignored;
  for (int s = 0; s < servers; ++s)
    fs::remove(
        fs::path(folder) / part_name(number, s, servers, mode == Save::kDelta ? kDelta : kPart),
        ignored);
}

void read_part(const std::string& path, const VisitSection& visit) {
  const FileReader file(path);
  std::string content;
  for (uint64_t at = 0;;) {
    check_file(file.size() - at >= kSectionHeader, path,
               ": it is cut off: it ends before its last section");
    char header[kSectionHeader];
    file.read_at(at, header, sizeof header);
    at += kSectionHeader;
    wire::Cursor in({header, sizeof header}, path);
    const auto tag = in.number<uint32_t>();
    const auto bytes = in.number<uint64_t>(), sum = in.number<uint64_t>();
    check_file(tag <= static_cast<uint32_t>(Section::kSeen), path, ": unknown section ", tag);
    check_file(bytes <= kMaxSection, path, ": a section of ", bytes, " bytes");
    check_file(bytes <= file.size() - at, path, ": it is cut off: it ends in a section of ", bytes,
               " bytes, of which it has ", file.size() - at);
    content.resize(bytes);
    file.read_at(at, content.data(), bytes);
    at += bytes;
    check_file(word_checksum(content) == sum, path, ": it is damaged (checksum)");
    if (static_cast<Section>(tag) == Section::kEnd) return;
    visit(static_cast<Section>(tag), content);
  }
}

uint64_t parse_section(TableService& tables, int server, Section section, std::string_view content,
                       std::string_view path) {
  wire::Cursor in(content, path);
  check_file(section != Section::kProgress, path, ": it is the own snapshot of a server");
  check_file(section < Section::kMembers, path, ": it is what a server gives its copy");
  if (section == Section::kDense) return load_dense(tables, in, path);
  if (section == Section::kGone) {
    load_gone(tables, in, path);
    return 0;
  }
  load_sparse(tables, server, section, in, path);
  return 0;
}

void load_snapshot(TableService& tables, const std::string& folder, int server, Content content) {
  if (!has_snapshot(folder) && has_text(folder)) return load_text(tables, folder, server);
  uint64_t wanted = 0, of_base = 0, of_delta = 0;
  for_each_section(
      folder, [&](Section section, std::string_view bytes, const std::string& path, bool is_delta) {
        if (content == Content::kRows && section == Section::kDense) return;
        (is_delta ? of_delta : of_base) += parse_section(tables, server, section, bytes, path);
      });
  const uint64_t taken = std::max(of_base, of_delta);
  for (const auto& table : tables.dense()) wanted += static_cast<uint64_t>(table->values.size());
  // A snapshot from before the first values were set has none of them.
  if (taken == 0) return;
  check_arg(taken == wanted, "snapshot ", folder, " has ", taken, " of the ", wanted,
            " values of parameters that server ", server, " holds: it is of another model");
  for (auto& table : tables.dense()) {
    const std::scoped_lock lock(table->mutex);
    table->values.mark_set();
  }
  tables.answer_waiting();
}

void read_records(const std::string& folder, const std::function<void(const SavedRecord&)>& visit) {
  std::string name;
  for_each_section(folder, [&](Section section, std::string_view content, const std::string& path,
                               bool /*is_delta*/) {
    wire::Cursor in(content, path);
    if (section == Section::kDense) return visit(read_dense(in, name, path));
    if (section == Section::kGone) {
      name = in.text();
      for (const uint64_t id : in.numbers())
        visit({.name = name, .path = path, .is_row = true, .begin = id});
    }
    if (section != Section::kSparse && section != Section::kSparseWithUses) return;
    const SparseHeader header = read_sparse_header(in, path);
    const std::string_view scalars = in.take(header.scalars * sizeof(float));
    const size_t record = header.record(section) * sizeof(float);
    const std::string_view ids = in.take(header.rows * 8), records = in.take(header.rows * record);
    in.finish();
    const bool has_day = section == Section::kSparseWithUses && header.scalars > 0;
    for (uint64_t r = 0; r < header.rows; ++r) {
      SavedRecord row{.name = header.name,
                      .path = path,
                      .is_row = true,
                      .width = header.dim,
                      .numel = header.dim,
                      .states = header.states,
                      .scalars = header.scalars - has_day,
                      .values = records.substr(r * record, record),
                      .scalar_values = scalars};
      std::memcpy(&row.begin, ids.data() + 8 * r, 8);
      visit(row);
    }
  });
}

}  // namespace fleetx::ps
