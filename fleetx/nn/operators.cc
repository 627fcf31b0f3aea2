#include "fleetx/nn/operators.h"

#include "fleetx/nn/math.h"

namespace fleetx::ir {

Var operator+(Operand x, Operand y) { return nn::add(x.var, y.var, {}, x.where); }
Var operator-(Operand x, Operand y) { return nn::sub(x.var, y.var, {}, x.where); }
Var operator*(Operand x, Operand y) { return nn::mul(x.var, y.var, {}, x.where); }
Var operator/(Operand x, Operand y) { return nn::div(x.var, y.var, {}, x.where); }

Var operator+(Operand x, double y) { return nn::scale(x.var, 1.0, y, x.where); }
Var operator-(Operand x, double y) { return nn::scale(x.var, 1.0, -y, x.where); }
Var operator*(Operand x, double y) { return nn::scale(x.var, y, 0.0, x.where); }
Var operator/(Operand x, double y) {
  check_arg(is_float(x.var.dtype()), nn::user_line(x.var.builder(), x.where), ": '", x.var.name(),
            "' of ", x.var.type(), " / ", y, ": cast it to f32 first, or use nn::floordiv");
  return nn::scale(x.var, 1.0 / y, 0.0, x.where);
}

Var operator+(double x, Operand y) { return y + x; }
Var operator-(double x, Operand y) { return nn::scale(y.var, -1.0, x, y.where); }
Var operator*(double x, Operand y) { return nn::scale(y.var, x, 0.0, y.where); }
Var operator/(double x, Operand y) {
  return nn::scale(nn::reciprocal(y.var, y.where), x, 0.0, y.where);
}

Var operator-(Operand x) { return nn::scale(x.var, -1.0, 0.0, x.where); }

}  // namespace fleetx::ir
