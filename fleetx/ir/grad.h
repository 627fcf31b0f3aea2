// What an op's grad function sees: the forward variables, the gradients of its outputs, and a
// Builder in the backward role. It emits ops and hands back the gradients of the inputs that need
// one:
//
//   void grad(Grad& g) {
//     g.set("x", g.op("scale", {{"x", g.dout("y")}}, {{"scale", g.attr<double>("scale")}}));
//   }
#pragma once

#include <functional>
#include <map>
#include <string>

#include "fleetx/ir/builder.h"

namespace fleetx::ir {

class Grad {
 public:
  // `grad_of(var)` gives the gradient that has arrived for a forward variable, or an undefined Var;
  // `needs(var)` says whether someone wants the gradient of it.
  Grad(Builder& builder, const Op& op, std::function<Var(const std::string&)> grad_of,
       std::function<bool(const std::string&)> needs)
      : b_(builder), op_(op), grad_of_(std::move(grad_of)), needs_(std::move(needs)) {}

  Builder& builder() { return b_; }
  const Op& op() const { return op_; }
  template <class T>
  T attr(std::string_view name) const {
    return op_.attr<T>(name);
  }
  const Attrs& attrs() const { return op_.attrs; }

  bool has(std::string_view slot) const { return op_.has_in(slot); }
  size_t count(std::string_view slot) const { return op_.in(slot).size(); }
  Var in(std::string_view slot, size_t i = 0) const;  // undefined where left out
  std::vector<Var> ins(std::string_view slot) const;
  Var out(std::string_view slot, size_t i = 0) const;

  bool needs(std::string_view slot, size_t i = 0) const;
  bool has_dout(std::string_view slot, size_t i = 0) const;
  // Zeros (like the output) where no gradient arrived.
  Var dout(std::string_view slot, size_t i = 0);

  // Appends a backward op. dx("x") names its output after the gradient of input x, so that texts
  // read well.
  Results op(std::string_view type, const std::vector<Arg>& args, Attrs attrs = {},
             const std::vector<Dest>& dests = {}) {
    return b_.op(type, args, std::move(attrs), dests);
  }
  std::string dx(std::string_view slot, size_t i = 0);
  void set(std::string_view slot, Var gradient) { set(slot, 0, std::move(gradient)); }
  void set(std::string_view slot, size_t i, Var gradient);

  // Gradients by (slot, position), for autograd.
  const std::map<std::pair<std::string, size_t>, Var>& results() const { return results_; }

 private:
  Builder& b_;
  const Op& op_;
  std::function<Var(const std::string&)> grad_of_;
  std::function<bool(const std::string&)> needs_;
  std::map<std::pair<std::string, size_t>, Var> results_;
};

}  // namespace fleetx::ir
