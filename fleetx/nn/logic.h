// Comparisons give bool; logical ops take it.
#pragma once

#include "fleetx/nn/call.h"

namespace fleetx::nn {

Var equal(const Var& x, const Var& y, Where where = Where::current());
Var not_equal(const Var& x, const Var& y, Where where = Where::current());
Var less_than(const Var& x, const Var& y, Where where = Where::current());
Var less_equal(const Var& x, const Var& y, Where where = Where::current());
Var greater_than(const Var& x, const Var& y, Where where = Where::current());
Var greater_equal(const Var& x, const Var& y, Where where = Where::current());
Var logical_and(const Var& x, const Var& y, Where where = Where::current());
Var logical_or(const Var& x, const Var& y, Where where = Where::current());
Var logical_xor(const Var& x, const Var& y, Where where = Where::current());
Var logical_not(const Var& x, Where where = Where::current());

}  // namespace fleetx::nn
