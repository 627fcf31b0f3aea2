// a + b, 2.0 * a, -a on variables. They live beside Var, so that they are found without `using`.
#pragma once

#include "fleetx/nn/call.h"

namespace fleetx::ir {

// An operand that knows the line it stands on: operators cannot take a default argument for it.
struct Operand {
  Operand(Var v, std::source_location w = std::source_location::current())  // NOLINT: implicit
      : var(std::move(v)), where(w) {}
  Operand(const Results& r, std::source_location w = std::source_location::current())  // NOLINT
      : var(r), where(w) {}

  Var var;
  std::source_location where;
};

Var operator+(Operand x, Operand y);  // broadcasts like nn::add
Var operator-(Operand x, Operand y);
Var operator*(Operand x, Operand y);
Var operator/(Operand x, Operand y);

Var operator+(Operand x, double y);
Var operator-(Operand x, double y);
Var operator*(Operand x, double y);
Var operator/(Operand x, double y);  // floats only

Var operator+(double x, Operand y);
Var operator-(double x, Operand y);
Var operator*(double x, Operand y);
Var operator/(double x, Operand y);

Var operator-(Operand x);

}  // namespace fleetx::ir
