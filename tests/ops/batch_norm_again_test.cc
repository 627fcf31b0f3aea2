#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

OpCase make_case(const std::string& label, const Shape& shape, const std::string& act) {
  const Shape channels{shape[1]};
  OpCase out{.label = label,
             .inputs = {{"x", random(shape, 1)},
                        {"scale", random(channels, 2, 0.5f, 1.5f)},
                        {"bias", random(channels, 3)},
                        {"saved_mean", random(channels, 4)},
                        {"saved_inv_std", random(channels, 5, 0.5f, 1.5f)}},
             .attrs = {{"act", act}},
             .gradient = false};
  out.reference = [act](const Tensors& in) -> Tensors {
    const Shape& s = in[0].shape();
    Tensor y(f32, s);
    const auto at = [&](size_t slot, int64_t c) {
      return static_cast<double>(in[slot].data<float>()[static_cast<size_t>(c)]);
    };
    for (int64_t i = 0; i < s.numel(); ++i) {
      const int64_t c = i / s.numel(2, s.rank()) % s[1];
      const double v = (at(0, i) - at(3, c)) * at(4, c) * at(1, c) + at(2, c);
      y.data<float>()[static_cast<size_t>(i)] =
          static_cast<float>(act == "relu" && v < 0 ? 0.0 : v);
    }
    return {y};
  };
  return out;
}

const AddCases cases("batch_norm_again", [](Cases& c) {
  c.add(make_case("images", {2, 5, 3, 4}, ""));
  c.add(make_case("relu", {2, 5, 3, 4}, "relu"));
  c.add(make_case("rank_2", {6, 7}, "relu"));
  c.add(make_case("large", {4, 16, 70, 70}, "relu"));
});

}  // namespace
}  // namespace fleetx::testing
