#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Norm {
  Shape x;
  bool is_test = false, global = false, relu = false;
  double momentum = 0.9, epsilon = 1e-5;
};

// x, scale, bias, mean, variance -> out, mean_out, variance_out, saved_mean, saved_inv_std
Tensors reference(const Norm& c, const Tensors& in) {
  const int64_t channels = c.x[1], spatial = c.x.numel(2, c.x.rank());
  Tensors out{Tensor(f32, c.x)};
  for (int i = 0; i < 4; ++i) out.emplace_back(f32, Shape{channels});
  const auto x = in[0].data<float>();
  for (int64_t channel = 0; channel < channels; ++channel) {
    std::vector<size_t> places;
    for (int64_t n = 0; n < c.x[0]; ++n)
      for (int64_t s = 0; s < spatial; ++s)
        places.push_back(static_cast<size_t>((n * channels + channel) * spatial + s));
    const auto k = static_cast<size_t>(channel);
    const auto count = static_cast<double>(places.size());
    const double old_mean = in[3].data<float>()[k], old_variance = in[4].data<float>()[k];
    double mean = 0, variance = 0;
    for (const size_t i : places) mean += x[i] / count;
    for (const size_t i : places) variance += (x[i] - mean) * (x[i] - mean) / count;
    const bool running = c.is_test || c.global;
    const double keep = running ? 1.0 : c.momentum;
    out[1].data<float>()[k] = static_cast<float>(keep * old_mean + (1 - keep) * mean);
    out[2].data<float>()[k] = static_cast<float>(keep * old_variance + (1 - keep) * variance);
    if (running) mean = old_mean, variance = old_variance;
    const double inv_std = 1.0 / std::sqrt(variance + c.epsilon);
    out[3].data<float>()[k] = static_cast<float>(mean);
    out[4].data<float>()[k] = static_cast<float>(inv_std);
    for (const size_t i : places) {
      const double y = (x[i] - mean) * inv_std * in[1].data<float>()[k] + in[2].data<float>()[k];
      out[0].data<float>()[i] = static_cast<float>(c.relu && y < 0 ? 0.0 : y);
    }
  }
  return out;
}

OpCase make_case(const std::string& label, const Norm& c) {
  const Shape per_channel{c.x[1]};
  OpCase out{.label = label,
             .inputs = {{"x", random(c.x, 1, -2.0f, 3.0f)},
                        {"scale", random(per_channel, 2, 0.5f, 1.5f)},
                        {"bias", random(per_channel, 3)},
                        OpInput("mean", random(per_channel, 4)).state(),
                        OpInput("variance", random(per_channel, 5, 0.5f, 2.0f)).state()}};
  out.attrs = {{"momentum", c.momentum},
               {"epsilon", c.epsilon},
               {"is_test", c.is_test},
               {"use_global_stats", c.global},
               {"act", c.relu ? "relu" : ""}};
  out.updates = {{"mean_out", "mean"}, {"variance_out", "variance"}};
  out.constants = {"saved_mean", "saved_inv_std"};
  out.reference = [c](const Tensors& in) { return reference(c, in); };
  // With relu a step of the differences can cross the bend.
  if (c.relu) {
    out.epsilon = 1e-3;
    out.grad_tolerance = 5e-2;
  }
  return out;
}

const AddCases cases("batch_norm", [](Cases& c) {
  const OpCase whole = make_case("", {.x = {3, 5, 4, 3}});
  for (const std::string slot : {"x", "scale", "bias"})
    c.add(only_gradients_of(whole, "only_d" + slot, {slot}));
  c.add(make_case("train", {.x = {3, 5, 4, 3}}));
  c.add(make_case("train_relu", {.x = {3, 5, 4, 3}, .relu = true}));
  c.add(make_case("train_momentum", {.x = {2, 2, 3, 3}, .momentum = 0.5, .epsilon = 1e-3}));
  c.add(make_case("train_many_channels", {.x = {2, 40, 3, 3}}));
  c.add(make_case("train_large_plane", {.x = {2, 3, 30, 37}}));
  c.add(make_case("test", {.x = {2, 5, 3, 3}, .is_test = true}));
  c.add(make_case("test_relu", {.x = {2, 5, 3, 3}, .is_test = true, .relu = true}));
  c.add(make_case("global", {.x = {2, 5, 3, 3}, .global = true}));
  c.add(make_case("global_relu", {.x = {2, 5, 3, 3}, .global = true, .relu = true}));
  c.add(make_case("rank_2", {.x = {9, 5}}));
  c.add(make_case("rank_2_wide", {.x = {12, 37}, .relu = true}));
  c.add(make_case("rank_2_tall", {.x = {1500, 19}}));
  c.add(make_case("rank_2_test", {.x = {4, 18}, .is_test = true}));
  c.add(make_case("one_channel", {.x = {4, 1, 5, 5}}));

  const OpCase global = make_case("", {.x = {3, 5, 4, 3}, .global = true, .relu = true});
  c.add(only_gradients_of(global, "global_only_dx", {"x"}));

  if (!c.timed) return;
  OpCase perf = make_case("resnet.perf", {.x = {16, 256, 56, 56}, .relu = true});
  perf.perf = true;
  c.add(perf);
});

}  // namespace
}  // namespace fleetx::testing
