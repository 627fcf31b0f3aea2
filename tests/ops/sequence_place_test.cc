#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("sequence_place", [](Cases& c) {
  c.add(
      {.label = "with_empty_ones_and_a_tail",
       .inputs = {{"like", random({7, 2})}, {"lengths", Tensor::of<int64_t>({5}, {2, 0, 3, 1, 0})}},
       .unknown = {{"like", 0}, {"lengths", 0}},
       .reference = [](const Tensors&) -> Tensors {
         return {Tensor::of<int64_t>({7}, {0, 0, 2, 2, 2, 3, 0}),
                 Tensor::of<int64_t>({7}, {0, 1, 0, 1, 2, 0, 0}),
                 Tensor::of<int64_t>({7}, {2, 1, 3, 2, 1, 1, 0})};
       }});
});

TEST(SequencePlaceErrors, NameTheSequence) {
  const auto bad = [](std::vector<int64_t> lengths, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      const auto n = static_cast<int64_t>(lengths.size());
      run_op("sequence_place", {.inputs = {{"like", random({4, 1})},
                                           {"lengths", Tensor::of<int64_t>({n}, lengths)}}});
    });
  };
  bad({3, 2}, {"sequence_place", "sequence 1 has 2 rows", "1 of 4 are left"});
  bad({-1}, {"sequence 0 has -1 rows"});
}

}  // namespace
}  // namespace fleetx::testing
