#include "fleetx/ps/server_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "fleetx/ps/snapshot.h"

namespace fleetx::ps {

namespace {

constexpr size_t kSeenIds = size_t{1} << 18;  // of a section

Fd open_state(const std::string& disk) {
  if (disk.empty()) return Fd(memfd_create("fleetx-ps-state", MFD_CLOEXEC));
  return Fd(open(disk.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}

void put_flags(std::string& out, const std::vector<bool>& flags) {
  wire::put(out, static_cast<uint32_t>(flags.size()));
  for (const bool flag : flags) wire::put(out, static_cast<uint8_t>(flag));
}

std::vector<bool> flags_of(wire::Cursor& in, size_t wanted, std::string_view path) {
  std::vector<bool> flags(in.count(1));
  check_file(flags.size() == wanted, path, ": it is the state of a server of another job");
  for (size_t i = 0; i < flags.size(); ++i) flags[i] = in.number<uint8_t>() != 0;
  return flags;
}

void write_seen(PartWriter& file, uint32_t table, SparseTable& rows) {
  std::vector<uint64_t> ids, counts;
  const auto flush = [&] {
    std::string content;
    wire::put(content, table);
    wire::put_numbers(content, ids);
    wire::put_numbers(content, counts);
    file.write(Section::kSeen, content);
    ids.clear();
    counts.clear();
  };
  rows.for_each_seen([&](uint64_t id, int64_t count) {
    ids.push_back(id);
    counts.push_back(static_cast<uint64_t>(count));
    if (ids.size() == kSeenIds) flush();
  });
  if (!ids.empty()) flush();
}

}  // namespace

StateFile::StateFile(const std::string& disk)
    : on_disk_(!disk.empty()),
      fd_(open_state(disk)),
      path_(on_disk_ ? disk : str("/proc/self/fd/", fd_.get())) {
  check_arg(static_cast<bool>(fd_), "cannot write the state of a server to ",
            on_disk_ ? disk : "memory", ": errno ", errno);
}

StateFile::~StateFile() {
  if (on_disk_) unlink(path_.c_str());
}

void StateFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    check_file(n > 0, "cannot keep the state of a server: errno ", errno);
    size_ += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

std::string encode(const MembersSection& m) {
  std::string out;
  put_flags(out, m.gone);
  for (const TableService::Member& member : m.members) {
    wire::put(out, static_cast<uint8_t>(member.left));
    wire::put(out, member.meeting);
  }
  put_flags(out, m.has_values);
  wire::put(out, m.last_shrink.first);
  wire::put(out, m.last_shrink.second);
  return out;
}

MembersSection decode_members(std::string_view bytes, const JobSpec& job, std::string_view path) {
  wire::Cursor in(bytes, path);
  MembersSection m;
  m.gone = flags_of(in, static_cast<size_t>(job.workers), path);
  for (size_t w = 0; w < m.gone.size(); ++w) {
    const bool left = in.number<uint8_t>() != 0;
    m.members.push_back({left, in.number<uint64_t>()});
  }
  m.has_values = flags_of(in, job.dense.size(), path);
  m.last_shrink.first = in.number<uint64_t>();
  m.last_shrink.second = in.number<uint64_t>();
  in.finish();
  return m;
}

void parse_pending(TableService& tables, std::string_view bytes, std::string_view path) {
  wire::Cursor in(bytes, path);
  const auto state = in.number<uint32_t>(), worker = in.number<uint32_t>();
  const std::string_view header = in.take(wire::kHeaderBytes);
  tables.keep_pending(
      state, worker,
      wire::decode(std::span<const char, wire::kHeaderBytes>(header.data(), wire::kHeaderBytes)),
      bytes.substr(8 + wire::kHeaderBytes));
}

void parse_seen(TableService& tables, std::string_view bytes, std::string_view path) {
  wire::Cursor in(bytes, path);
  const auto table = in.number<uint32_t>();
  const std::vector<uint64_t> ids = in.numbers(), counts = in.numbers();
  in.finish();
  check_file(table < tables.sparse().size() && ids.size() == counts.size(), path,
             ": counts of ids for a table that is not there");
  for (size_t i = 0; i < ids.size(); ++i)
    tables.sparse()[table]->put_seen(ids[i], static_cast<int64_t>(counts[i]));
}

void write_state(const std::string& path, TableService& tables, const ServerState& state) {
  PartWriter file(path);
  MembersSection members{
      .gone = state.gone, .members = tables.members(), .last_shrink = state.last_shrink};
  for (const auto& table : tables.dense()) {
    const std::scoped_lock lock(table->mutex);
    members.has_values.push_back(table->values.is_set());
  }
  file.write(Section::kMembers, encode(members));
  file.write(Section::kProgress, encode(Progress{tables.progress(), state.workers}));
  write_tables(file, tables);
  tables.for_each_pending(
      [&](size_t table, size_t worker, const wire::Header& header, std::string_view payload) {
        std::string content;
        wire::put(content, static_cast<uint32_t>(table));
        wire::put(content, static_cast<uint32_t>(worker));
        const wire::HeaderBytes bytes = wire::encode(header);
        content.append(bytes.data(), bytes.size());
        content += payload;
        file.write(Section::kPending, content);
      });
  for (size_t t = 0; t < tables.sparse().size(); ++t)
    write_seen(file, static_cast<uint32_t>(t), *tables.sparse()[t]);
  file.finish();
}

ServerState load_state(TableService& tables, const std::string& path, int server) {
  std::optional<Progress> progress;
  std::optional<MembersSection> members;
  read_part(path, [&](Section section, std::string_view content) {
    if (section == Section::kProgress)
      progress = decode_progress(content, tables.job(), path);
    else if (section == Section::kMembers)
      members = decode_members(content, tables.job(), path);
    else if (section == Section::kPending)
      parse_pending(tables, content, path);
    else if (section == Section::kSeen)
      parse_seen(tables, content, path);
    else
      parse_section(tables, server, section, content, path);
  });
  check_file(progress && members, path, ": it does not say how far the workers were");
  for (size_t t = 0; t < members->has_values.size(); ++t) {
    TableService::Dense& table = *tables.dense()[t];
    const std::scoped_lock lock(table.mutex);
    if (members->has_values[t]) table.values.mark_set();
  }
  tables.restore(progress->tables);
  tables.set_members(members->members);
  return {progress->workers, members->gone, members->last_shrink};
}

}  // namespace fleetx::ps
