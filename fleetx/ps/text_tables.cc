#include "fleetx/ps/text_tables.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "fleetx/base/file.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/log.h"
#include "fleetx/base/names.h"

namespace fleetx::ps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLinesBytes = size_t{4} << 20;  // that are written or read at once
constexpr uint64_t kMetaBytes = 1 << 20;
constexpr size_t kMostColumns = 64;
constexpr int64_t kMostValues = 1 << 20;  // of a column
constexpr std::string_view kFolder = "_txt";

// Of a part of a line, the number that it is, whole.
template <class T>
bool is_number(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end;
}

std::string_view take_until(std::string_view& rest, char mark) {
  const size_t end = std::min(rest.find(mark), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

struct Meta {
  std::vector<std::string> names{};
  std::vector<int64_t> dims{};
  int64_t count = 0;
};

Meta parse_meta(std::string_view text, const std::string& path) {
  std::map<std::string, std::string, std::less<>> fields;
  for (int line = 1; !text.empty(); ++line) {
    std::string_view rest = take_until(text, '\n');
    if (rest.empty()) continue;
    check_file(rest.find('=') != std::string_view::npos, path, ":", line, ": expected name=value");
    const std::string_view name = take_until(rest, '=');
    fields[std::string(name)] = rest;
  }
  const auto field = [&](std::string_view name) -> const std::string& {
    const auto it = fields.find(name);
    check_file(it != fields.end(), path, ": there is no ", name, "=");
    return it->second;
  };
  Meta meta{.names = split_list(field("row_names"))};
  for (const std::string& dim : split_list(field("row_dims"))) {
    int64_t value = 0;
    check_file(is_number(dim, value) && value > 0 && value <= kMostValues, path, ": row_dims: '",
               dim, "' is not a number of values");
    meta.dims.push_back(value);
  }
  check_file(meta.names.size() == meta.dims.size() && !meta.names.empty() &&
                 meta.names.size() <= kMostColumns,
             path, ": ", meta.names.size(), " row_names and ", meta.dims.size(), " row_dims");
  check_file(is_number(field("count"), meta.count) && meta.count >= 0, path, ": count is '",
             field("count"), "'");
  return meta;
}

// Where the columns of a line go in a record; -1: nowhere.
std::vector<int64_t> places_of(const Meta& meta, const SparseSpec& spec, const std::string& path) {
  check_arg(meta.names[0] == "Param" && meta.dims[0] == spec.dim, path, ": the first column is ",
            meta.names[0], " of ", meta.dims[0], " values; table '", spec.name,
            "' of this job has rows of ", spec.dim, ": it is of another model");
  std::vector<int64_t> places;
  int64_t at = 0;
  std::string left_out;
  for (size_t c = 0; c < meta.names.size(); ++c) {
    const bool wide = meta.dims[c] == spec.dim && !meta.names[c].ends_with("Pow") &&
                      meta.names[c] != "LearningRate";
    if (!wide) left_out += str(left_out.empty() ? "" : ", ", meta.names[c]);
    for (int64_t i = 0; i < meta.dims[c]; ++i) places.push_back(wide ? at++ : -1);
  }
  const auto states = static_cast<int64_t>(spec.rule->states().size());
  const int64_t found = at / spec.dim - 1;
  check_arg(found == 0 || found == states, path, ": table '", spec.name,
            "' was trained by another optimizer: ", found, " states (", join(meta.names, ","),
            "), in this job ", states);
  if (!left_out.empty())
    log::warning("ps", path, ": ", left_out, " of each row begin anew: they are not kept by row");
  return places;
}

class Rows {
 public:
  Rows(TableService& tables, size_t table, int server, std::vector<int64_t> places,
       std::string path)
      : spec_(tables.job().sparse[table]),
        table_(*tables.sparse()[table]),
        servers_(tables.job().servers),
        server_(server),
        places_(std::move(places)),
        path_(std::move(path)),
        record_(static_cast<size_t>(table_.record_floats())) {
    const std::vector<float> states = spec_.rule->states();
    for (size_t s = 0; s < states.size(); ++s)
      std::fill_n(record_.begin() + static_cast<std::ptrdiff_t>(s + 1) * spec_.dim, spec_.dim,
                  states[s]);
    if (spec_.life) record_.back() = table_.scalars().back();  // seen today
  }

  // Whole lines of it, and the beginning of one, which is kept.
  void read(std::string_view part) {
    for (size_t end = part.find('\n'); end != std::string_view::npos; end = part.find('\n')) {
      begun_ += part.substr(0, end);
      take(begun_, ++lines_);
      begun_.clear();
      part.remove_prefix(end + 1);
    }
    begun_ += part;
  }
  void finish(int64_t count) {
    if (!begun_.empty()) take(begun_, ++lines_);
    check_file(lines_ == count, path_, ": ", lines_, " rows where ", count,
               " are expected (count= of its .meta): it is incomplete");
  }

 private:
  void take(std::string_view line, int64_t number) {
    const auto check = [&](bool ok, const auto&... what) {
      check_file(ok, path_, ":", number, ": ", what...);
    };
    uint64_t id = 0;
    const std::string_view id_text = take_until(line, '\t');
    check(is_number(id_text, id), "'", id_text.substr(0, 40), "' is not an id");
    int64_t count = 0, unseen = 0;
    int admitted = 1;
    if (line.find('\t') != std::string_view::npos)
      check(
          is_number(take_until(line, '\t'), count) && count >= 0 &&
              is_number(take_until(line, '\t'), unseen) && unseen >= 0 &&
              is_number(take_until(line, '\t'), admitted) && (admitted == 0 || admitted == 1),
          "expected id, count, unseen days, admitted (0 or 1) and values, with tabs between them");
    size_t values = 0;
    for (; !line.empty() && values < places_.size(); ++values) {
      float value = 0;
      const std::string_view text = take_until(line, ',');
      check(is_number(text, value), "value ", values + 1, " is '", text.substr(0, 40), "'");
      if (places_[values] >= 0) record_[static_cast<size_t>(places_[values])] = value;
    }
    check(values == places_.size() && line.empty(), line.empty() ? "only " : "more than ", values,
          " values where ", places_.size(), " are expected");
    if (server_of(id, servers_) != server_) return;
    if (admitted == 1)
      table_.put(id, record_);
    else if (count > 0 && spec_.min_count > 1)
      table_.put_seen(id, count);
  }

  const SparseSpec& spec_;
  SparseTable& table_;
  const int servers_, server_;
  const std::vector<int64_t> places_;
  const std::string path_;
  std::vector<float> record_;
  std::string begun_;
  int64_t lines_ = 0;
};

}  // namespace

void save_text(TableService& tables, const std::string& folder, int server) {
  for (size_t t = 0; t < tables.sparse().size(); ++t) {
    const SparseSpec& spec = tables.job().sparse[t];
    SparseTable& table = *tables.sparse()[t];
    check_arg(spec.name.find('/') == std::string::npos, "table '", spec.name,
              "': a name with a slash cannot be a file of the text layout");
    const fs::path own = fs::path(folder) / (spec.name + std::string(kFolder));
    fs::create_directories(own);
    const std::string path = (own / str(spec.name, ".block", server)).string();
    FileWriter file(path + ".txt");
    const auto values = static_cast<size_t>(table.dim()) * (1 + spec.rule->states().size());
    int64_t rows = 0;
    std::string lines;
    const auto flush = [&] {
      file.write(lines);
      lines.clear();
    };
    table.for_each([&](uint64_t id, std::span<const float> record) {
      lines += std::to_string(id);
      char number[32];
      for (size_t i = 0; i < values; ++i) {
        lines += i == 0 ? '\t' : ',';
        lines.append(number, std::to_chars(number, number + sizeof number, record[i]).ptr);
      }
      lines += '\n';
      ++rows;
      if (lines.size() > kLinesBytes) flush();
    });
    flush();
    file.finish();
    std::string names = "Param", dims = std::to_string(table.dim());
    for (size_t k = 0; k < spec.rule->states().size(); ++k) {
      names += str(",State", k);
      dims += str(",", table.dim());
    }
    write_file(path + ".meta", str("param=", spec.name, "\nshard_id=", server, "\nrow_names=",
                                   names, "\nrow_dims=", dims, "\ncount=", rows, "\n"));
  }
}

bool has_text(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory() && entry.path().filename().string().ends_with(kFolder)) return true;
  return false;
}

void parse_text(TableService& tables, size_t table, int server, std::string_view meta,
                std::string_view rows, const std::string& path) {
  const Meta m = parse_meta(meta, path + ".meta");
  Rows to(tables, table, server, places_of(m, tables.job().sparse[table], path + ".meta"),
          path + ".txt");
  to.read(rows);
  to.finish(m.count);
}

void load_text(TableService& tables, const std::string& folder, int server) {
  const JobSpec& job = tables.job();
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || !name.ends_with(kFolder)) continue;
    const std::string table = name.substr(0, name.size() - kFolder.size());
    check_arg(std::ranges::find(job.sparse, table, &SparseSpec::name) != job.sparse.end(), folder,
              ": sparse table '", table, "' is not in this job: it is of another model");
  }
  for (size_t t = 0; t < job.sparse.size(); ++t) {
    const std::string& name = job.sparse[t].name;
    const fs::path own = fs::path(folder) / (name + std::string(kFolder));
    check_arg(fs::is_directory(own), folder, ": there are no rows of table '", name,
              "': ", own.string(), " is missing");
    for (int block = 0;; ++block) {
      const std::string path = (own / str(name, ".block", block)).string();
      if (!fs::exists(path + ".txt") && !fs::exists(path + ".meta")) {
        check_arg(block > 0, own.string(), ": ", name, ".block0.txt is missing");
        break;
      }
      const Meta m = parse_meta(read_file(path + ".meta", kMetaBytes), path + ".meta");
      Rows to(tables, t, server, places_of(m, job.sparse[t], path + ".meta"), path + ".txt");
      const FileReader file(path + ".txt");
      std::string part;
      for (uint64_t at = 0; at < file.size(); at += part.size()) {
        part.resize(std::min<uint64_t>(kLinesBytes, file.size() - at));
        file.read_at(at, part.data(), part.size());
        to.read(part);
      }
      to.finish(m.count);
    }
  }
}

}  // namespace fleetx::ps
