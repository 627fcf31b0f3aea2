// First values of parameters. Some kinds depend on the shape, so an Init is a function of it:
//
//   nn::fc(x, {.size = 10, .weight_attr = {.init = nn::init::normal(0.0, 0.02)}});
//
// Values are counter-based: they depend on the seed and the parameter's name only.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fleetx/ir/builder.h"

namespace fleetx::nn {

using Init = std::function<ir::Initializer(const Shape&)>;  // empty: the layer's own default

namespace init {

// A seed of 0 means: that of the program.
Init constant(double value);
Init uniform(double low, double high, int64_t seed = 0);
Init normal(double mean, double std, int64_t seed = 0);
Init truncated_normal(double mean, double std, int64_t seed = 0);  // cut at two std
// Glorot and Bengio 2010: the variance is 2 / (fan_in + fan_out).
Init xavier_uniform(int64_t seed = 0);
Init xavier_normal(int64_t seed = 0);
// He et al. 2015: the variance is 2 / fan_in.
Init msra_uniform(int64_t seed = 0);
Init msra_normal(int64_t seed = 0);
// Given values, row-major.
Init assign(std::vector<double> values);

// [in, out] of a matrix; [out, in, kernel...] of a convolution; a vector counts as both.
struct Fans {
  int64_t in, out;
};
Fans fans(const Shape& shape);

}  // namespace init
}  // namespace fleetx::nn
