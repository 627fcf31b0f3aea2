#include "fleetx/nn/logic.h"

namespace fleetx::nn {
namespace {

Var binary(std::string_view op, const Var& x, const Var& y, const Where& where) {
  return call(x, op, {{"x", x}, {"y", y}}, {}, where);
}

}  // namespace

Var equal(const Var& x, const Var& y, Where where) { return binary("equal", x, y, where); }
Var not_equal(const Var& x, const Var& y, Where where) { return binary("not_equal", x, y, where); }
Var less_than(const Var& x, const Var& y, Where where) { return binary("less_than", x, y, where); }
Var less_equal(const Var& x, const Var& y, Where where) {
  return binary("less_equal", x, y, where);
}
Var greater_than(const Var& x, const Var& y, Where where) {
  return binary("greater_than", x, y, where);
}
Var greater_equal(const Var& x, const Var& y, Where where) {
  return binary("greater_equal", x, y, where);
}
Var logical_and(const Var& x, const Var& y, Where where) {
  return binary("logical_and", x, y, where);
}
Var logical_or(const Var& x, const Var& y, Where where) {
  return binary("logical_or", x, y, where);
}
Var logical_xor(const Var& x, const Var& y, Where where) {
  return binary("logical_xor", x, y, where);
}
Var logical_not(const Var& x, Where where) { return call(x, "logical_not", {{"x", x}}, {}, where); }

}  // namespace fleetx::nn
