#include "fleetx/nn/pool.h"

namespace fleetx::nn {

Var pool2d(const Var& x, Pool2dOptions o, Where where) {
  return call(x, "pool2d", {{"x", x}},
              {{"kernel", o.kernel.ints()},
               {"stride", o.stride.ints()},
               {"padding", o.padding.resolve(x, o.kernel, o.stride, 1, where)},
               {"type", o.type},
               {"exclusive", o.exclusive},
               {"ceil_mode", o.ceil_mode},
               {"global", o.global}},
              where);
}

Var adaptive_pool2d(const Var& x, AdaptivePool2dOptions o, Where where) {
  return call(x, "pool2d", {{"x", x}},
              {{"kernel", o.size.ints()}, {"type", o.type}, {"adaptive", true}}, where);
}

}  // namespace fleetx::nn
