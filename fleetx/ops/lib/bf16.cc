#include "fleetx/ops/lib/bf16.h"

#include "fleetx/base/cpu.h"

namespace fleetx::ops {
namespace {

bool& pretended() {
  static bool value = false;
  return value;
}

}  // namespace

bool multiplies_bf16() { return pretended() || cpu::best_isa() >= cpu::Isa::kAvx512Bf16; }
void pretend_to_multiply_bf16(bool pretend) { pretended() = pretend; }

}  // namespace fleetx::ops
