#include <set>

#include "tests/ops/recurrence_case.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

// Chunks of one sequence as (begin, end, type), by the letters that its tags stand for.
std::set<Index> chunks(const Tensor& tags, int64_t begin, int64_t n, const std::string& letters,
                       int64_t types) {
  std::set<Index> out;
  const auto width = static_cast<int64_t>(letters.size());
  for (int64_t t = 0; t < n;) {
    const auto tag = [&](int64_t i) { return at<int64_t>(tags, {begin + i}); };
    const auto letter = [&](int64_t i) { return letters[static_cast<size_t>(tag(i) % width)]; };
    const int64_t type = tag(t) / width;
    int64_t end = t + 1;
    for (; type < types && end < n && tag(end) / width == type; ++end)
      if (letter(end) == 'B' || letter(end) == 'S' || letter(end - 1) == 'E' ||
          letter(end - 1) == 'S')
        break;
    if (type < types) out.insert({begin + t, begin + end, type});
    t = end;
  }
  return out;
}

auto counted(const std::string& letters, int64_t types, int64_t excluded) {
  return [=](const Tensors& in) -> Tensors {
    std::set<Index> found, labelled;
    for (int64_t b = 0; b < in[2].numel(); ++b) {
      const int64_t begin = at<int64_t>(in[2], {b}), n = at<int64_t>(in[3], {b});
      found.merge(chunks(in[0], begin, n, letters, types));
      labelled.merge(chunks(in[1], begin, n, letters, types));
    }
    const auto drop = [&](const Index& c) { return c[2] == excluded; };
    std::erase_if(found, drop);
    std::erase_if(labelled, drop);
    int64_t right = 0;
    for (const Index& c : found) right += labelled.contains(c) ? 1 : 0;
    const auto p = static_cast<float>(right) / static_cast<float>(found.size());
    const auto q = static_cast<float>(right) / static_cast<float>(labelled.size());
    const auto one = [](int64_t v) { return Tensor::scalar<int64_t>(v); };
    return {Tensor::scalar(p),
            Tensor::scalar(q),
            Tensor::scalar(2 * p * q / (p + q)),
            one(static_cast<int64_t>(found.size())),
            one(static_cast<int64_t>(labelled.size())),
            one(right)};
  };
}

const AddCases cases("chunk_eval", [](Cases& c) {
  const Ragged many(40, 0);
  const std::pair<const char*, const char*> schemes[] = {
      {"plain", "I"}, {"IOB", "BI"}, {"IOE", "IE"}, {"IOBES", "BIES"}};
  for (const auto& [scheme, letters] : schemes)
    for (const int64_t excluded : {-1, 1}) {
      const auto width = static_cast<int64_t>(std::string_view(letters).size());
      Tensor label = random_ints({many.rows}, 0, 3 * width + 1, 1), guess = label.clone();
      for (int64_t i = 0; i < many.rows; i += 3)
        at<int64_t>(guess, {i}) = (at<int64_t>(label, {i}) + i) % (3 * width + 1);
      c.add({.label = std::string(scheme) + (excluded < 0 ? "" : "_without_one"),
             .inputs = {{"inference", guess},
                        {"label", label},
                        many.input("starts"),
                        many.input("lengths")},
             .attrs = {{"chunk_scheme", scheme},
                       {"num_chunk_types", 3},
                       {"excluded_chunk_types", excluded < 0 ? ir::Ints{} : ir::Ints{excluded}}},
             .unknown = {{"inference", 0}, {"label", 0}, {"starts", 0}, {"lengths", 0}},
             .reference = counted(letters, 3, excluded)});
    }
});

TEST(ChunkEval, NothingRightIsZero) {
  const Tensors out =
      run_op("chunk_eval", {.inputs = {{"inference", Tensor::of<int64_t>({2}, {2, 2})},
                                       {"label", Tensor::of<int64_t>({2}, {0, 1})},
                                       {"starts", Tensor::of<int64_t>({1}, {0})},
                                       {"lengths", Tensor::of<int64_t>({1}, {2})}}});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(out[i].item<float>(), 0.0f);
  EXPECT_EQ(out[4].item<int64_t>(), 1);
}

TEST(ChunkEvalErrors, NameTheTag) {
  expect_error(Error::Kind::kInvalidArgument, {"chunk_eval", "tag 3", "0 .. 2"}, [] {
    run_op("chunk_eval", {.inputs = {{"inference", Tensor::of<int64_t>({1}, {3})},
                                     {"label", Tensor::of<int64_t>({1}, {0})},
                                     {"starts", Tensor::of<int64_t>({1}, {0})},
                                     {"lengths", Tensor::of<int64_t>({1}, {1})}}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"chunk_scheme", "'BIO'"}, [] {
    run_op("chunk_eval", {.inputs = {{"inference", Tensor::of<int64_t>({1}, {0})},
                                     {"label", Tensor::of<int64_t>({1}, {0})},
                                     {"starts", Tensor::of<int64_t>({1}, {0})},
                                     {"lengths", Tensor::of<int64_t>({1}, {1})}},
                          .attrs = {{"chunk_scheme", "BIO"}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
