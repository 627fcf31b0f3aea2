// The forward part of the strategy amp: which ops of a program compute in 16 bits, and the casts
// between them and the others.
#pragma once

#include <map>
#include <set>
#include <string>

#include "fleetx/ir/program.h"
#include "fleetx/strategies/amp_lists.h"

namespace fleetx::strategies {

struct AmpCastOptions {
  DType half = bf16;
  const AmpLists& lists;
  std::set<std::string, std::less<>> black_vars = {};  // ops that read or write one stay f32
  // Pure: what is in no list computes in 16 bits, too, where its kernels can; of the ops that write
  // these variables only, or of all where there are none.
  bool pure = false;
  std::set<std::string, std::less<>> guarded = {};
  // Parameters that only ops in 16 bits read become 16 bits wide themselves, but for those of
  // norms.
  bool half_parameters = false;
};

// Op types and how often they stand in the program.
using OpCounts = std::map<std::string, int, std::less<>>;

struct AmpCastReport {
  OpCounts half;       // compute in 16 bits
  OpCounts no_kernel;  // would by their lists, but have no kernel for 16 bits: they compute in f32
  int casts = 0;
  ir::Names parameters;  // that are 16 bits wide now
};

// Changes the forward part; backward follows from it. Parameters stay f32, unless they are asked
// for in 16 bits. One cast for each variable and dtype.
AmpCastReport insert_casts(ir::Program& main, const AmpCastOptions& options);

// The program that gives parameters their first values makes them in f32 and rounds them.
void round_first_values(ir::Program& startup, const ir::Names& parameters, DType half);
// A program that was made before, to test with, computes in f32 with parameters of 16 bits.
void read_as_f32(ir::Program& program, const ir::Names& parameters, DType half);

}  // namespace fleetx::strategies
