#include "fleetx/predict/machine.h"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "fleetx/base/cpu.h"
#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"

namespace fleetx::predict {
namespace {

constexpr double kGiga = 1e9, kMicro = 1e-6, kHour = 3600;
constexpr double kGiB = 1 << 30;
constexpr uint64_t kMostBytes = 16 << 20;

// One mapping of the file. Every key is asked for once; what nobody asked for is a mistake.
class Section {
 public:
  Section(const YAML::Node& node, std::string name, const std::string& source)
      : node_(node), name_(std::move(name)), source_(source) {
    check(node.IsMap(), node, name_.empty() ? "the file" : str("'", name_, "'"),
          " must be a list of `key: value`");
    for (const auto& entry : node) {
      const std::string key = entry.first.as<std::string>();
      check(std::ranges::count(unread_, key) == 0, entry.first, "'", full(key), "' is there twice");
      unread_.push_back(key);
    }
  }

  bool has(const std::string& key) const { return static_cast<bool>(node_[key]); }

  double number(const std::string& key, double least, double most) {
    const YAML::Node value = take(key);
    double number = 0;
    try {
      number = value.as<double>();
    } catch (const YAML::Exception&) {
      check(false, value, "'", full(key), "' must be a number");
    }
    check(number >= least && number <= most, value, "'", full(key), "' is ", number,
          "; must be from ", least, " to ", most);
    return number;
  }
  double number(const std::string& key, double least, double most, double fallback) {
    return has(key) ? number(key, least, most) : (known_.push_back(key), fallback);
  }
  int whole(const std::string& key, int least, int most, int fallback) {
    const double value = number(key, least, most, fallback);
    check(value == std::floor(value), node_[key], "'", full(key), "' is ", value,
          "; must be a whole number");
    return static_cast<int>(value);
  }
  std::string text(const std::string& key, const std::string& fallback) {
    if (!has(key)) return known_.push_back(key), fallback;
    const YAML::Node value = take(key);
    check(value.IsScalar(), value, "'", full(key), "' must be a text");
    return value.as<std::string>();
  }
  bool flag(const std::string& key, bool fallback) {
    if (!has(key)) return known_.push_back(key), fallback;
    const YAML::Node value = take(key);
    try {
      return value.as<bool>();
    } catch (const YAML::Exception&) {
      check(false, value, "'", full(key), "' must be true or false");
    }
    return fallback;
  }
  Section section(const std::string& key) { return {take(key), full(key), source_}; }
  std::vector<YAML::Node> list(const std::string& key) {
    if (!has(key)) return known_.push_back(key), std::vector<YAML::Node>{};
    const YAML::Node value = take(key);
    check(value.IsSequence(), value, "'", full(key), "' must be a list");
    return {value.begin(), value.end()};
  }
  void end() const {
    for (const auto& entry : node_) {
      const std::string key = entry.first.as<std::string>();
      check(std::ranges::count(unread_, key) == 0, entry.first, "there is no field '", full(key),
            "'", did_you_mean(key, known_), "; here are: ", join(known_, ", "));
    }
  }
  template <class... Parts>
  void check(bool ok, const YAML::Node& at, const Parts&... message) const {
    if (ok) return;
    const int line = at.IsDefined() && at.Mark().line >= 0 ? at.Mark().line + 1 : 1;
    fail(Error::Kind::kCorrupt, str(source_, ":", line, ": ", message...));
  }
  const YAML::Node& node() const { return node_; }
  const std::string& source() const { return source_; }
  std::string full(const std::string& key) const {
    return name_.empty() ? key : str(name_, ".", key);
  }

 private:
  YAML::Node take(const std::string& key) {
    known_.push_back(key);
    check(has(key), node_, "'", full(key), "' is missing");
    std::erase(unread_, key);
    return node_[key];
  }

  YAML::Node node_;
  std::string name_;
  std::string source_;
  std::vector<std::string> unread_, known_;
};

Link parse_link(Section s) {
  Link link;
  link.bytes_per_second = s.number("GBps", 1e-6, 1e6) * kGiga;
  link.latency_s = s.number("latency_us", 0, 1e8) * kMicro;
  link.tensor_s = s.number("tensor_us", 0, 1e8, 0) * kMicro;
  link.shared = s.flag("shared", true);
  link.ring = s.flag("ring", false);
  if (s.has("overlap")) link.overlap = s.number("overlap", 0.01, 1);
  for (const YAML::Node& entry : s.list("rates")) {
    Section rate(entry, s.full("rates"), s.source());
    link.rates.push_back({rate.number("bytes", 1, 1e15), rate.number("GBps", 1e-6, 1e6) * kGiga});
    rate.end();
    s.check(
        link.rates.size() < 2 || link.rates.back().bytes > std::prev(link.rates.end(), 2)->bytes,
        entry, "'", s.full("rates"), "': the sizes must ascend");
  }
  s.end();
  return link;
}

OpSample parse_op(Section s) {
  OpSample op;
  op.op = s.text("op", "");
  s.check(!op.op.empty(), s.node(), "'ops.op' is missing");
  const std::string dtype = s.text("dtype", "f32");
  const auto known = dtype_from_name(dtype);
  s.check(known.has_value(), s.node(), "'ops.dtype' is '", dtype, "'; known: f32, bf16, f16, i64");
  op.dtype = *known;
  op.flops = s.number("flops", 0, 1e18, 0);
  op.bytes = s.number("bytes", 0, 1e18, 0);
  s.check(op.flops > 0 || op.bytes > 0, s.node(), "op '", op.op, "' has neither flops nor bytes");
  op.seconds = s.number("us", 1e-6, 1e10) * kMicro;
  op.kernel = s.text("kernel", "");
  op.cores = s.whole("cores", kAllCores, 1 << 20, kAllCores);
  s.end();
  return op;
}

Machine parse_machine(const YAML::Node& root, const std::string& source) {
  constexpr double kMostRate = 1e9;
  Section s(root, "", source);
  Machine m;
  m.name = s.text("name", "machine");
  s.check(s.has("cores"), root, "'cores' is missing");
  m.cores = s.whole("cores", 1, 1 << 20, 1);
  m.ranks = s.whole("ranks", 1, 1 << 20, 0);
  m.cores_per_rank = s.whole("cores_per_rank", 1, m.cores, 0);
  m.memory_bytes = s.number("memory_GiB", 1e-3, 1e9) * kGiB;
  Section compute = s.section("compute");
  m.f32_flops = compute.number("f32_GFLOPS", 1e-3, kMostRate) * kGiga;
  m.half_flops = compute.number("half_GFLOPS", 1e-3, kMostRate, m.f32_flops / kGiga) * kGiga;
  m.memory_rate = compute.number("memory_GBps", 1e-3, kMostRate) * kGiga;
  m.op_s = compute.number("op_us", 0, 1e8, 0) * kMicro;
  m.overlap = compute.number("overlap", 0.01, 1, 1);
  compute.end();
  Section links = s.section("links");
  m.host = parse_link(links.section("host"));
  m.network = links.has("network") ? parse_link(links.section("network")) : m.host;
  links.end();
  for (const YAML::Node& entry : s.list("ops")) m.ops.push_back(parse_op({entry, "ops", source}));
  if (s.has("failures")) {
    Section f = s.section("failures");
    m.failures.mtbf_s = f.number("host_mtbf_hours", 1e-3, 1e9) * kHour;
    m.failures.checkpoint_s = f.number("checkpoint_s", 0, 1e6);
    m.failures.restart_s = f.number("restart_s", 0, 1e6);
    f.end();
  }
  s.end();
  return m;
}

void write_link(std::ostream& out, const char* name, const Link& link) {
  out << "  " << name << ": {GBps: " << link.bytes_per_second / kGiga
      << ", latency_us: " << link.latency_s / kMicro;
  if (link.tensor_s > 0) out << ", tensor_us: " << link.tensor_s / kMicro;
  out << ", shared: " << (link.shared ? "true" : "false");
  if (link.ring) out << ", ring: true";
  if (link.overlap > 0) out << ", overlap: " << link.overlap;
  if (!link.rates.empty()) out << ", rates: [";
  for (size_t i = 0; i < link.rates.size(); ++i)
    out << (i == 0 ? "" : ", ") << "{bytes: " << link.rates[i].bytes
        << ", GBps: " << link.rates[i].bytes_per_second / kGiga << "}";
  out << (link.rates.empty() ? "}\n" : "]}\n");
}

}  // namespace

double Link::rate(double bytes) const {
  if (rates.empty()) return bytes_per_second;
  const auto after = std::ranges::upper_bound(rates, bytes, {}, &Rate::bytes);
  if (after == rates.begin()) return rates.front().bytes_per_second;
  if (after == rates.end()) return rates.back().bytes_per_second;
  const Rate &low = *std::prev(after), &high = *after;
  const double share = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
  return low.bytes_per_second * std::pow(high.bytes_per_second / low.bytes_per_second, share);
}

Machine Machine::parse(std::string_view text, const std::string& source) {
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    check_file(root.IsDefined() && !root.IsNull(), source,
               ": is empty; `fleetx calibrate` writes a description of this machine");
    return parse_machine(root, source);
  } catch (const YAML::Exception& e) {
    fail(Error::Kind::kCorrupt, str(source, ":", std::max(e.mark.line, 0) + 1, ": ", e.msg));
  }
}

Machine Machine::load(const std::string& path) { return parse(read_file(path, kMostBytes), path); }

std::string Machine::to_text() const {
  std::ostringstream out;
  out.precision(6);
  out << "name: \"" << name << "\"\n"
      << "cores: " << cores << "\n";
  if (ranks > 0) out << "ranks: " << ranks << "\n";
  if (cores_per_rank > 0) out << "cores_per_rank: " << cores_per_rank << "\n";
  out << "memory_GiB: " << memory_bytes / kGiB << "\n"
      << "compute:\n"
      << "  f32_GFLOPS: " << f32_flops / kGiga << "\n"
      << "  half_GFLOPS: " << half_flops / kGiga << "\n"
      << "  memory_GBps: " << memory_rate / kGiga << "\n"
      << "  op_us: " << op_s / kMicro << "\n"
      << "  overlap: " << overlap << "\n"
      << "links:\n";
  write_link(out, "host", host);
  write_link(out, "network", network);
  if (failures.mtbf_s > 0)
    out << "failures: {host_mtbf_hours: " << failures.mtbf_s / kHour
        << ", checkpoint_s: " << failures.checkpoint_s << ", restart_s: " << failures.restart_s
        << "}\n";
  if (!ops.empty()) out << "ops:\n";
  for (const OpSample& op : ops) {
    out << "  - {op: " << op.op;
    if (!op.kernel.empty()) out << ", kernel: \"" << op.kernel << "\"";
    out << ", dtype: " << fleetx::name_of(op.dtype);
    if (op.cores != kAllCores) out << ", cores: " << op.cores;
    out << ", flops: " << op.flops << ", bytes: " << op.bytes << ", us: " << op.seconds / kMicro
        << "}\n";
  }
  return out.str();
}

// Half of what the units could do at 2.5 GHz, a memory channel's share, copies through memory.
Machine Machine::guess() {
  constexpr double kClock = 2.5e9, kReached = 0.5;
  const cpu::Isa isa = cpu::best_isa();
  const double per_cycle = isa >= cpu::Isa::kAvx512 ? 64 : isa == cpu::Isa::kAvx2 ? 32 : 8;
  const double faster = isa >= cpu::Isa::kAmx ? 4 : isa >= cpu::Isa::kAvx512Bf16 ? 1.6 : 0.9;
  Machine m;
  m.name = str("guess of ", cpu::capabilities().model);
  m.cores = default_threads();
  m.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  m.f32_flops = m.cores * kClock * per_cycle * kReached;
  m.half_flops = m.f32_flops * faster;
  m.memory_rate = std::min(8e9 * m.cores, 100e9);
  m.op_s = 3e-6;
  m.overlap = 0.7;
  m.host = {.bytes_per_second = 4e9, .latency_s = 10e-6};
  m.network = {.bytes_per_second = 1.15e9, .latency_s = 60e-6};
  return m;
}

}  // namespace fleetx::predict
