// One collective op on 1, 2, 3 and 4 ranks that are threads of the test, against a plain reference:
//
//   check_collective({.op = "all_gather", .reference = [](const Values& of, int) { ... }});
//
// It is run in its blocking form and as a pair of start and wait, in every dtype, and the gradient
// is compared with finite differences of the sum of the losses of all ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleetx/ir/builder.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::testing {

using Value = std::vector<double>;  // the elements of a variable
using Values = std::vector<Value>;  // of every rank

struct CollectiveCase {
  std::string op;
  ir::Attrs attrs = {};      // besides group and ranks
  bool gives_ranks = false;  // the op has the attribute ranks
  bool reads_late = false;   // wait takes `held`
  bool in_place = false;     // may write what it reads
  // From x of all ranks to out of one of them.
  std::function<Value(const Values& of, int rank)> reference = {};
  std::vector<DType> dtypes = {f32, bf16, f16, f64, i64};
  bool gradient = true;
};

void check_collective(const CollectiveCase& c);
// The parts of it.
void check_forward(const CollectiveCase& c, int ranks, DType dtype);
void check_in_place(const CollectiveCase& c, int ranks, DType dtype);  // start and wait
void check_gradient(const CollectiveCase& c, int ranks);

// x of a rank: [2 * ranks, 3], small numbers that halves can hold.
Value value_of(int rank, int ranks);
Tensor tensor_of(const Value& value, DType dtype, Shape shape);
Value values_in(const Tensor& tensor);

// Element by element over all ranks.
Value combine(const Values& of, const std::function<double(double, double)>& fn);

// Appends the pair of start and wait of an op; out is the name of what wait makes.
ir::Var start_and_wait(ir::Builder& b, const std::string& op, const ir::Var& x, const ir::Attrs& a,
                       const std::string& out, bool reads_late = false);

}  // namespace fleetx::testing
