// What this CPU can really do. An instruction set counts only if a child process that runs one of
// its instructions survives: hypervisors are known to advertise AMX and fault on it. Probed once
// per process, cheap afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::cpu {

// Ordered: each level includes those before it.
enum class Isa : uint8_t { kSse, kAvx2, kAvx512, kAvx512Bf16, kAmx };

std::string_view name_of(Isa isa);

struct Capabilities {
  Isa best = Isa::kSse;     // highest level that is advertised and works
  std::vector<Isa> faulty;  // advertised, but the probe died
  std::string model;        // "Intel(R) Xeon(R) Processor"
};

// The levels CPUID advertises, and a probe that says whether running one instruction of a level
// survives. Both can be replaced, so that a test can describe a CPU that lies.
Capabilities probe(const std::vector<Isa>& advertised, const std::function<bool(Isa)>& survives);

std::vector<Isa> advertised_by_cpuid();
bool survives_in_child(Isa isa);

// The answer for this process: probed, then capped by FLEETX_MAX_ISA. Says once what it switched
// off.
const Capabilities& capabilities();
inline Isa best_isa() { return capabilities().best; }
// From now on best_isa() is at most this. Before anything has been computed, or parts of the
// library that have chosen already go on with their choice.
void limit_to(Isa isa);

}  // namespace fleetx::cpu
