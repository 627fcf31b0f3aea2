#include "fleetx/nn/initializer.h"

#include <cmath>

namespace fleetx::nn::init {
namespace {

ir::Initializer uniform_within(double limit, int64_t seed) {
  return {"uniform", {{"low", -limit}, {"high", limit}, {"seed", seed}}};
}

ir::Initializer gaussian(double std, int64_t seed) {
  return {"gaussian", {{"mean", 0.0}, {"std", std}, {"seed", seed}}};
}

double sum_of_fans(const Shape& shape) {
  const Fans f = fans(shape);
  return static_cast<double>(f.in + f.out);
}

double fan_in(const Shape& shape) { return static_cast<double>(fans(shape).in); }

}  // namespace

Fans fans(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {shape[0], shape[0]};
  if (shape.rank() == 2) return {shape[0], shape[1]};
  const int64_t receptive_field = shape.numel(2, shape.rank());
  return {shape[1] * receptive_field, shape[0] * receptive_field};
}

Init constant(double value) {
  return [=](const Shape&) -> ir::Initializer { return {"fill", {{"value", value}}}; };
}

Init uniform(double low, double high, int64_t seed) {
  check_arg(low <= high, "initializer uniform: low ", low, " is above high ", high);
  return [=](const Shape&) -> ir::Initializer {
    return {"uniform", {{"low", low}, {"high", high}, {"seed", seed}}};
  };
}

Init normal(double mean, double std, int64_t seed) {
  check_arg(std >= 0, "initializer normal: std ", std, " is negative");
  return [=](const Shape&) -> ir::Initializer {
    return {"gaussian", {{"mean", mean}, {"std", std}, {"seed", seed}}};
  };
}

Init truncated_normal(double mean, double std, int64_t seed) {
  check_arg(std >= 0, "initializer truncated_normal: std ", std, " is negative");
  return [=](const Shape&) -> ir::Initializer {
    return {"truncated_gaussian", {{"mean", mean}, {"std", std}, {"seed", seed}}};
  };
}

// A uniform distribution within +-a has the variance a * a / 3.
Init xavier_uniform(int64_t seed) {
  return [=](const Shape& s) { return uniform_within(std::sqrt(6.0 / sum_of_fans(s)), seed); };
}

Init xavier_normal(int64_t seed) {
  return [=](const Shape& s) { return gaussian(std::sqrt(2.0 / sum_of_fans(s)), seed); };
}

Init msra_uniform(int64_t seed) {
  return [=](const Shape& s) { return uniform_within(std::sqrt(6.0 / fan_in(s)), seed); };
}

Init msra_normal(int64_t seed) {
  return [=](const Shape& s) { return gaussian(std::sqrt(2.0 / fan_in(s)), seed); };
}

Init assign(std::vector<double> values) {
  return [values = std::move(values)](const Shape& s) -> ir::Initializer {
    check_arg(static_cast<int64_t>(values.size()) == s.numel(),
              "initializer assign: ", values.size(), " values for a parameter of shape ", s);
    return {"assign_value", {{"values", values}}};
  };
}

}  // namespace fleetx::nn::init
