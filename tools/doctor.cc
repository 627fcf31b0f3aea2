// fleetx doctor: what this machine has, what FleetX makes of it, and what is missing.

#include <fstream>
#include <iostream>
#include <thread>

#include "fleetx/base/cgroup.h"
#include "fleetx/base/cpu.h"
#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/base/libraries.h"
#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"
#include "fleetx/data/fashion_mnist.h"
#include "tools/commands.h"
#include "tools/table.h"

namespace fleetx::tools {
namespace {

// The first word after `key` in a file of "key value" lines, or "".
std::string look_up(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string word; in >> word;)
    if (word == key && in >> word) return word;
  return "";
}

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string gib(const std::string& kilobytes) {
  return kilobytes.empty() ? "unknown" : decimal(std::stod(kilobytes) / (1 << 20), 1) + " GiB";
}

std::string quota_text() {
  const double quota = cgroup::cpu_quota();
  return quota > 0 ? decimal(quota, 2) + " cores" : "none";
}

void show_cpu(std::vector<std::string>& advice) {
  const cpu::Capabilities& c = cpu::capabilities();
  std::vector<std::string> advertised, faulty;
  for (const cpu::Isa isa : cpu::advertised_by_cpuid()) advertised.emplace_back(cpu::name_of(isa));
  for (const cpu::Isa isa : c.faulty) faulty.emplace_back(cpu::name_of(isa));
  std::cout << "CPU\n"
            << "  model               " << c.model << "\n"
            << "  advertised          " << join(advertised, " ") << "\n"
            << "  used up to          " << cpu::name_of(c.best) << "\n"
            << "  advertised, faulty  " << (faulty.empty() ? "none" : join(faulty, " ")) << "\n"
            << "  cores               " << physical_cores() << " physical, "
            << std::thread::hardware_concurrency() << " logical may be used\n"
            << "  CPU quota (cgroup)  " << quota_text() << "\n"
            << "  threads             " << num_threads() << "\n";
  if (!faulty.empty())
    advice.push_back(str("the CPU (or its hypervisor) advertises ", join(faulty, ", "),
                         " but faults on it; FleetX does not use it, other programs may crash"));
  if (c.best < cpu::Isa::kAvx2) advice.push_back("without AVX2 training is several times slower");
  if (num_threads() > physical_cores())
    advice.push_back(str(num_threads(), " threads on ", physical_cores(),
                         " physical cores: more than one per core slows training down"));
  else if (num_threads() > threads_within(physical_cores(), cgroup::cpu_quota()))
    advice.push_back(str(num_threads(), " threads within a CPU quota of ", quota_text(),
                         ": all of them stop where it is used up"));
}

void show_memory(std::vector<std::string>& advice) {
  const std::string pages = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string limit = first_line("/sys/fs/cgroup/memory.max");
  std::cout << "Memory\n"
            << "  total               " << gib(look_up("/proc/meminfo", "MemTotal:")) << "\n"
            << "  available           " << gib(look_up("/proc/meminfo", "MemAvailable:")) << "\n";
  if (!limit.empty() && limit != "max")
    std::cout << "  limit (cgroup)      " << decimal(std::stod(limit) / (1 << 30), 1) << " GiB\n";
  std::cout << "  huge pages          " << (pages.empty() ? "unknown" : pages) << "\n";
  if (pages.find("[never]") != std::string::npos)
    advice.push_back(
        "transparent huge pages are off; `madvise` or `always` speeds up large models");
}

void show_libraries() {
  Table table({{"  library"}, {"version"}, {"for"}});
  for (const Library& l : libraries()) table.add({"  " + l.name, l.version, l.purpose});
  std::cout << "Libraries\n";
  table.print(std::cout);
}

void show_data(std::vector<std::string>& advice) {
  std::cout << "Data sets\n  Fashion-MNIST       ";
  try {
    const data::FashionMnist test({.split = data::Split::kTest});
    std::cout << "there (" << test.size() << " test images read)\n";
  } catch (const Error& e) {
    std::cout << "missing\n";
    advice.emplace_back(e.what());
  }
}

void show_variables() {
  Table table({{"  variable"}, {"value"}, {"meaning"}});
  for (const env::Known& known : env::known_variables())
    table.add({str("  ", known.name), env::get(known.name).value_or("-"), std::string(known.help)});
  std::cout << "Environment\n";
  table.print(std::cout);
}

void doctor() {
  (void)num_threads();  // a wrong FLEETX_THREADS is to be the only thing that is said
  std::vector<std::string> advice;
  std::cout << "FleetX " << FLEETX_VERSION << "\n\n";
  show_cpu(advice);
  std::cout << "\n";
  show_memory(advice);
  std::cout << "\n";
  show_libraries();
  std::cout << "\n";
  show_data(advice);
  std::cout << "\n";
  show_variables();
  std::cout << "\n";
  if (advice.empty()) std::cout << "Nothing is missing.\n";
  for (const std::string& line : advice) std::cout << "Note: " << line << "\n";
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "What this machine has, and what is missing");
  command->footer(
      "Instruction sets are tried, not believed: one that the CPU advertises but faults on is not\n"
      "used, and is shown here.\n\n"
      "Examples:\n"
      "  fleetx doctor\n"
      "  FLEETX_MAX_ISA=avx2 fleetx doctor     # as if the CPU had no more than AVX2\n");
  command->callback(doctor);
}

}  // namespace fleetx::tools
