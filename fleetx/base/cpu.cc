#include "fleetx/base/cpu.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "fleetx/base/env.h"
#include "fleetx/base/log.h"

namespace fleetx::cpu {
namespace {

constexpr std::array kAll{Isa::kSse, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

__attribute__((target("avx2,fma"))) void run_avx2() {
  volatile float sink[8];
  __m256 a = _mm256_set1_ps(1.5f);
  a = _mm256_fmadd_ps(a, a, a);
  const __m256i b = _mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(a));
  std::memcpy(const_cast<float*>(sink), &b, sizeof b);
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))) void run_avx512() {
  volatile float sink[16];
  __m512 a = _mm512_set1_ps(1.5f);
  a = _mm512_fmadd_ps(a, a, a);
  std::memcpy(const_cast<float*>(sink), &a, sizeof a);
}

__attribute__((target("avx512f,avx512vl,avx512bf16"))) void run_avx512_bf16() {
  volatile uint16_t sink[16];
  const __m256bh a = _mm512_cvtneps_pbh(_mm512_set1_ps(1.5f));
  std::memcpy(const_cast<uint16_t*>(sink), &a, sizeof a);
}

// The system must grant the tile state before a process may use it.
bool request_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

__attribute__((target("amx-tile,amx-bf16"))) void run_amx() {
  if (!request_tiles()) raise(SIGILL);
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t column_bytes[16] = {64, 64, 64};
    uint8_t rows[16] = {16, 16, 16};
  } config;
  alignas(64) static char data[1024];
  // g++ believes that _tile_loadconfig reads eight bytes only, and would drop the rest of config.
  asm volatile("" : : "m"(config));
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_loadd(1, data, 64);
  _tile_loadd(2, data, 64);
  _tile_dpbf16ps(0, 1, 2);
  _tile_release();
}

void run_one_instruction(Isa isa) {
  switch (isa) {
    case Isa::kSse: return;
    case Isa::kAvx2: return run_avx2();
    case Isa::kAvx512: return run_avx512();
    case Isa::kAvx512Bf16: return run_avx512_bf16();
    case Isa::kAmx: return run_amx();
  }
}

Isa isa_from_name(std::string_view name, std::string_view variable) {
  for (const Isa isa : kAll)
    if (name_of(isa) == name) return isa;
  check_arg(false, variable, "='", name, "': choose sse, avx2, avx512, avx512_bf16 or amx");
  return Isa::kSse;
}

std::string model_name() {
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i)
    __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                &words[4 * i + 3]);
  std::string name(reinterpret_cast<const char*>(words.data()), sizeof words);
  name = name.c_str();  // cut at the terminating zero
  const size_t first = name.find_first_not_of(' ');
  return first == std::string::npos ? "unknown"
                                    : name.substr(first, name.find_last_not_of(' ') - first + 1);
}

Capabilities probe_this_process() {
  std::vector<Isa> advertised = advertised_by_cpuid();
  const auto lie = env::get("FLEETX_SIMULATE_FAULT");
  const auto faulty =
      lie ? std::optional(isa_from_name(*lie, "FLEETX_SIMULATE_FAULT")) : std::nullopt;
  if (faulty && std::find(advertised.begin(), advertised.end(), *faulty) == advertised.end())
    advertised.push_back(*faulty);
  Capabilities found = probe(advertised, [&](Isa isa) {
    // The child asked for its own tiles; ours can still be refused (a signal stack too small).
    return isa != faulty && survives_in_child(isa) && (isa != Isa::kAmx || request_tiles());
  });
  for (const Isa isa : found.faulty)
    log::warning("cpu", "this CPU advertises ", name_of(isa), " but faults on it; FleetX uses ",
                 name_of(found.best), " instead");
  if (const auto cap = env::get("FLEETX_MAX_ISA"))
    found.best = std::min(found.best, isa_from_name(*cap, "FLEETX_MAX_ISA"));
  return found;
}

}  // namespace

std::string_view name_of(Isa isa) {
  constexpr std::array<std::string_view, 5> kNames{"sse", "avx2", "avx512", "avx512_bf16", "amx"};
  return kNames[static_cast<size_t>(isa)];
}

Capabilities probe(const std::vector<Isa>& advertised, const std::function<bool(Isa)>& survives) {
  Capabilities found;
  found.model = model_name();
  bool chain_holds = true;  // a level is usable only on top of the ones below it
  for (const Isa isa : kAll) {
    const bool claimed = isa == Isa::kSse ||
                         std::find(advertised.begin(), advertised.end(), isa) != advertised.end();
    const bool works = claimed && survives(isa);
    if (claimed && !works) found.faulty.push_back(isa);
    chain_holds = chain_holds && works;
    if (chain_holds) found.best = isa;
  }
  return found;
}

std::vector<Isa> advertised_by_cpuid() {
  std::vector<Isa> out{Isa::kSse};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back(Isa::kAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    out.push_back(Isa::kAvx512);
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool leaf7 = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0;
  if (leaf7 && (a & (1u << 5)) && out.back() == Isa::kAvx512) out.push_back(Isa::kAvx512Bf16);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 22)) && (d & (1u << 24)))
    out.push_back(Isa::kAmx);
  return out;
}

bool survives_in_child(Isa isa) {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    // Only async-signal-safe calls here: the parent may have threads. No core file for an expected
    // fault.
    signal(SIGILL, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    run_one_instruction(isa);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

namespace {

Capabilities& found_here() {
  static Capabilities found = probe_this_process();
  return found;
}

}  // namespace

const Capabilities& capabilities() { return found_here(); }

void limit_to(Isa isa) { found_here().best = std::min(found_here().best, isa); }

}  // namespace fleetx::cpu
