// One list of op cases serves correctness, gradients, round trips and speed. A test file adds
// cases:
//
//   const AddCases cases("relu", [](Cases& c) {
//     c.add({.label = "small",
//            .inputs = {{"x", random({3, 5})}},
//            .reference = [](const Tensors& in) -> Tensors {
//              return {map(in[0], [](float x) { ... })}; }});
//   });
//
// For every case the runner makes the tests <op>.<label>.forward (against `reference`, a plain loop
// written independently of the kernel), .gradient (central differences on every float input, where
// the op has a gradient) and .round_trip (text and protobuf). `ops_test --perf [filter]` times the
// same cases, and larger ones, which are only made then (Cases::timed).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/ir/attr.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::testing {

using Tensors = std::vector<Tensor>;

// Rows of a table, as a sparse gradient has them; those with the id `padding` are left out.
struct SparseRows {
  Tensor ids, values;  // i64 [n], f32 [n, width]
  int64_t table;       // its number of rows
  int64_t padding = -1;

  Tensor dense() const;  // the table that they add up to, [table, width]
};

struct OpInput {
  explicit OpInput(std::string slot_name) : slot(std::move(slot_name)) {}
  OpInput(std::string slot_name, Tensor one)
      : slot(std::move(slot_name)), tensors{std::move(one)} {}
  OpInput(std::string slot_name, Tensors list)
      : slot(std::move(slot_name)), tensors(std::move(list)) {}
  OpInput& state() {  // a persistable variable that the op updates (running mean, optimizer state,
                      // parameter)
    is_state = true;
    return *this;
  }
  // One more input, after the dense ones. The reference is given its dense form; fetching a sparse
  // output gives the dense form too.
  OpInput& sparse(SparseRows one) {
    rows.push_back(std::move(one));
    return *this;
  }
  OpInput& no_grad() {
    differentiable = false;
    return *this;
  }

  std::string slot;
  Tensors tensors;
  std::vector<SparseRows> rows;
  bool is_state = false;
  bool differentiable = true;  // floats only
};

struct OpCase {
  std::string label = {};
  std::vector<OpInput> inputs = {};
  ir::Attrs attrs = {};
  // Optional and list outputs to ask for: slot and count. (slot -> input slot) pairs in `updates`
  // are written in place.
  std::vector<std::pair<std::string, int>> outputs = {};
  std::vector<std::pair<std::string, std::string>> updates = {};
  // Output slots through which no gradient flows: saved statistics, masks.
  std::vector<std::string> constants = {};
  // (input slot, dimension): the program declares it as unknown.
  std::vector<std::pair<std::string, int>> unknown = {};
  // From the input tensors (flattened in order) to the outputs in slot order. An undefined Tensor:
  // do not compare.
  std::function<Tensors(const Tensors&)> reference = nullptr;
  double tolerance = 1e-5;       // |got - want| <= tolerance * (1 + |want|)
  double grad_tolerance = 1e-2;  // the same for gradients; f32 central differences are rough
  double epsilon = 1e-2;         // step of the differences
  bool gradient = true;  // false: not differentiable at these inputs, say why in the test file
  bool perf = false;     // large: only timed, not run as a test
};

// The same case under another label, with gradients of only the named inputs.
inline OpCase only_gradients_of(OpCase c, const std::string& label,
                                const std::vector<std::string>& slots) {
  c.label = label;
  for (OpInput& input : c.inputs)
    input.differentiable = std::find(slots.begin(), slots.end(), input.slot) != slots.end();
  return c;
}

class Cases {
 public:
  void add(OpCase c) { list.push_back(std::move(c)); }
  std::vector<OpCase> list;
  // Cases with `perf` are wanted. Making their inputs takes seconds, and minutes under sanitizers.
  bool timed = false;
};

// Registers the cases of one op when the test binary starts.
struct AddCases {
  AddCases(std::string op, std::function<void(Cases&)> fill);
};

// Reproducible inputs. random: uniform in [low, high); distinct tensors for distinct salts.
Tensor random(Shape shape, uint64_t salt = 0, float low = -1.0f, float high = 1.0f);
Tensor random_ints(Shape shape, int64_t low, int64_t high,
                   uint64_t salt = 0);  // i64 in [low, high)
Tensor filled(Shape shape, float value);
// n rows of which some have the same id; n > 1.
SparseRows random_rows(int64_t n, const Shape& table, uint64_t salt = 0);

// Helpers for references: f32 in, f32 out.
Tensor map(const Tensor& x, const std::function<float(float)>& fn);
Tensor zip(const Tensor& x, const Tensor& y,
           const std::function<float(float, float)>& fn);  // same shape

// Compares two tensors of one type; bool, ints exactly. Reports the worst element.
void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what);

// Runs an op once on given inputs and returns its outputs in slot order (all through the real
// executor).
Tensors run_op(const std::string& op, const OpCase& c);

}  // namespace fleetx::testing
