#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("all_true", [](Cases& c) {
  const auto add = [&](const char* label, const std::vector<bool>& flags, bool all, int64_t first) {
    Tensors xs;
    for (const bool flag : flags) xs.push_back(Tensor::of<bool>({1}, {flag}));
    c.add({.label = label, .inputs = {{"xs", xs}}, .reference = [=](const Tensors&) -> Tensors {
             return {Tensor::of<bool>({1}, {all}), Tensor::of<int64_t>({1}, {first})};
           }});
  };
  add("one", {true}, true, -1);
  add("all", {true, true, true}, true, -1);
  add("none", {false, false}, false, 0);
  add("last", {true, true, false}, false, 2);
  add("some", {true, false, true, false}, false, 1);
});

}  // namespace
}  // namespace fleetx::testing
