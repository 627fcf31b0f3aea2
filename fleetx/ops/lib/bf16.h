// Whether products and convolutions of bf16 are worth being computed in it.
#pragma once

namespace fleetx::ops {

// This CPU multiplies bf16 itself (AVX512_BF16, AMX): oneDNN's generated code does so then.
bool multiplies_bf16();
// For tests: with AVX-512 alone oneDNN emulates those instructions, slowly.
void pretend_to_multiply_bf16(bool pretend);

}  // namespace fleetx::ops
