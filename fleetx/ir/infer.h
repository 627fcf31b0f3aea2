// The argument of an op's infer function: the types of its inputs, its attributes, and the types of
// its outputs, which the function sets.
//
// Infer functions only see known dimensions. If a dimension is unknown (-1) while a program is
// being built, the function runs twice with different example values for it; output dimensions that
// differ between the two runs are unknown, too. So an infer function is plain arithmetic. Only a
// function that tests divisibility must check by_example() first.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

class Infer {
 public:
  using TypeOf = std::function<const TensorType&(const std::string& var)>;

  Infer(const Op& op, const TypeOf& type_of);  // all dimensions known
  Infer(const Op& op, const TypeOf& type_of,
        int64_t unknown_dim);  // unknown ones replaced by an example

  bool has(std::string_view slot) const { return count(slot) > 0; }
  size_t count(std::string_view slot) const { return op_.in(slot).size(); }
  size_t out_count(std::string_view slot) const { return op_.out(slot).size(); }
  const TensorType& in(std::string_view slot, size_t i = 0) const;
  TensorType& out(std::string_view slot, size_t i = 0);
  const TensorType& out(std::string_view slot, size_t i = 0) const;
  template <class T>
  T attr(std::string_view name) const {
    return op_.attr<T>(name);
  }
  bool by_example() const { return example_ != 0; }
  const Op& op() const { return op_; }

  // Throws kInvalidArgument: "<file:line>: <type> '<name>': <message>".
  template <class... Parts>
  void check(bool ok, const Parts&... message) const {
    if (!ok) [[unlikely]]
      fail_check(str(message...));
  }
  // "x 'fc_0.tmp_0' is f32[-1,128]": the input as the user knows it.
  std::string show(std::string_view slot, size_t i = 0) const;

  const std::vector<std::vector<TensorType>>& outputs() const { return outs_; }

 private:
  [[noreturn]] void fail_check(const std::string& message) const;

  const Op& op_;
  int64_t example_ = 0;
  std::vector<std::vector<TensorType>> shown_;  // as declared, for messages
  std::vector<std::vector<TensorType>> ins_, outs_;
};

// Types of all outputs, by slot; handles unknown dimensions.
std::vector<std::vector<TensorType>> infer_types(const Op& op, const Infer::TypeOf& type_of);

// Flops and bytes of one run; types must be known.
Cost cost_of(const Op& op, const Infer::TypeOf& type_of);
double bytes_of(const TensorType& type);
// Of an op that gives all inputs of a slot to the group that its attribute `group` names.
Communication communication_of(const Infer& c, CommKind kind, std::string_view slot);

}  // namespace fleetx::ir
