#include "fleetx/train/translator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/base/rng.h"
#include "fleetx/data/text_batches.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/train/beam_search.h"
#include "tests/support/expect_error.h"

namespace fleetx::train {
namespace {

using testing::expect_error;

constexpr int32_t kBegin = 0, kEnd = 1;
constexpr Translator::Marks kMarks{.source_end = kEnd, .target_begin = kBegin, .target_end = kEnd};

// A language whose translation is the sentence backwards, every word one higher.
constexpr int64_t kWords = 12;
std::vector<int32_t> sentence(uint64_t number) {
  const Philox random(7, number);
  std::vector<int32_t> out(2 + random.bits(0) % 5);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int32_t>(2 + random.bits(i + 1) % (kWords - 3));
  return out;
}
std::vector<int32_t> translated(std::vector<int32_t> words) {
  std::ranges::reverse(words);
  for (int32_t& word : words) ++word;
  return words;
}

struct Job {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  models::TransformerOptions options{.source_vocabulary = kWords,
                                     .target_vocabulary = kWords,
                                     .hidden = 32,
                                     .layers = 1,
                                     .heads = 4,
                                     .intermediate = 64,
                                     .label_smoothing = 0.05};
  runtime::Scope scope;
  runtime::Executor exe;
  models::TransformerTraining net;

  Job() {
    net = models::transformer({.words = b.data("src", i64, {-1, -1}),
                               .places = b.data("src_pos", i64, {-1, -1}),
                               .mask = b.data("mask", f32, {-1, 1, 1, -1})},
                              {.words = b.data("trg", i64, {-1, -1}),
                               .places = b.data("trg_pos", i64, {-1, -1}),
                               .next = b.data("next", i64, {-1, -1, 1}),
                               .weights = b.data("weights", f32, {-1, -1, 1})},
                              options);
  }

  static runtime::Feeds feeds(uint64_t first, int64_t rows) {
    constexpr int64_t n = 8;
    const Tensor src(i64, {rows, n}), places(i64, {rows, n}), mask(f32, {rows, 1, 1, n}),
        trg(i64, {rows, n}), next(i64, {rows, n, 1}), weights(f32, {rows, n, 1});
    std::ranges::fill(src.data<int64_t>(), kEnd);
    std::ranges::fill(next.data<int64_t>(), kEnd);
    for (int64_t r = 0; r < rows; ++r) {
      const auto from = sentence(first + static_cast<uint64_t>(r)), into = translated(from);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        const size_t at = static_cast<size_t>(r * n) + i;
        places.data<int64_t>()[at] = static_cast<int64_t>(i);
        mask.data<float>()[at] = i <= from.size() ? 0 : data::kHiddenScore;
        weights.data<float>()[at] = i <= into.size() ? 1 : 0;
        if (i < from.size()) src.data<int64_t>()[at] = from[i];
        if (i < into.size()) next.data<int64_t>()[at] = into[i];
        trg.data<int64_t>()[at] = i == 0 ? kBegin : i <= into.size() ? into[i - 1] : kEnd;
      }
    }
    return {{"src", src},        {"src_pos", places}, {"mask", mask},      {"trg", trg},
            {"trg_pos", places}, {"next", next},      {"weights", weights}};
  }
};

TEST(BeamSearch, OneBeamTakesTheLikeliestWord) {
  BeamSearch search(1, 0.6, kEnd);
  search.advance(std::vector<float>{0.6f, 0.3f}, std::vector<int64_t>{5, kEnd}, 2);
  EXPECT_FALSE(search.done());
  EXPECT_EQ(search.last(0), 5);
  search.advance(std::vector<float>{0.9f, 0.1f}, std::vector<int64_t>{kEnd, 5}, 2);
  EXPECT_TRUE(search.done());
  EXPECT_EQ(search.best().words, std::vector<int32_t>{5});
  EXPECT_NEAR(search.best().log_probability, std::log(0.54), 1e-6);
  EXPECT_NEAR(search.normalized(search.best()), std::log(0.54) / std::pow(7.0 / 6, 0.6), 1e-6);
}

TEST(BeamSearch, TwoBeamsFindWhatGreedyMisses) {
  BeamSearch search(2, 0.0, kEnd);
  // The likelier first word leads nowhere.
  const std::vector<float> first{0.55f, 0.45f, 0, 0, 0, 0, 0, 0};
  search.advance(first, std::vector<int64_t>{5, 6, 7, 8, 5, 6, 7, 8}, 4);
  EXPECT_EQ(search.last(0), 5);
  EXPECT_EQ(search.last(1), 6);
  const std::vector<float> second{0.3f, 0.3f, 0.2f, 0.2f, 0.9f, 0.1f, 0, 0};
  search.advance(second, std::vector<int64_t>{kEnd, 7, 8, 9, kEnd, 7, 8, 9}, 4);
  search.stop();
  EXPECT_EQ(search.best().words, std::vector<int32_t>{6});
}

TEST(BeamSearch, StopKeepsWhatIsUnderWay) {
  BeamSearch search(1, 0.0, kEnd);
  search.advance(std::vector<float>{0.6f, 0.3f}, std::vector<int64_t>{5, 6}, 2);
  search.stop();
  EXPECT_EQ(search.best().words, std::vector<int32_t>{5});
  EXPECT_THROW(BeamSearch(0, 0.0, kEnd), Error);
}

// The step program, which reads kept keys and values, computes what the training program does: the
// score of a translation is the sum of the log probabilities of its words.
TEST(Translator, ScoresAreThoseOfTheTrainingProgram) {
  Job job;
  const ir::Var probabilities = nn::softmax(job.net.logits);
  job.exe.run(job.startup, job.scope);
  const Tensor p = job.exe.run(job.main, job.scope, Job::feeds(3, 1), {probabilities.name()})[0];
  Translator translator(job.options, job.scope, kMarks);
  const Translation greedy =
      translator.translate({sentence(3)}, {.beams = 1, .length_penalty = 0, .max_length = 1})[0];
  const auto first = p.data<float>().subspan(0, static_cast<size_t>(kWords));
  EXPECT_NEAR(greedy.score, std::log(*std::ranges::max_element(first)), 1e-4);
}

TEST(Translator, LearnsToTranslateAndBeamsAreNotWorse) {
  Job job;
  optim::Adam({.lr = 0.004}).minimize(job.net.loss);
  job.exe.run(job.startup, job.scope);
  float loss = 0;
  for (uint64_t step = 0; step < 300; ++step)
    loss = job.exe
               .run(job.main, job.scope, Job::feeds(1000 + 64 * step, 64),
                    {job.net.token_loss.name()})[0]
               .item<float>();
  EXPECT_LT(loss, 0.1f);
  std::vector<std::vector<int32_t>> sentences;
  for (uint64_t i = 0; i < 60; ++i) sentences.push_back(sentence(i));
  Translator translator(job.options, job.scope, kMarks);
  int right[2] = {0, 0};
  double scores[2] = {0, 0};
  for (const int which : {0, 1}) {
    const auto out = translator.translate(sentences, {.beams = which == 0 ? 1 : 3, .batch = 25});
    ASSERT_EQ(out.size(), sentences.size());
    for (size_t i = 0; i < out.size(); ++i) {
      right[which] += out[i].words == translated(sentences[i]);
      scores[which] += out[i].score;
    }
  }
  EXPECT_GE(right[0], 54);
  EXPECT_GE(right[1], right[0]);
  EXPECT_GE(scores[1], scores[0] - 1e-4);
  // One sentence alone is translated as among others.
  EXPECT_EQ(translator.translate({sentences[7]}, {.beams = 3})[0].words,
            translator.translate(sentences, {.beams = 3})[7].words);
}

TEST(Translator, GivesNoWordBeyondTheVocabulary) {
  Job job;
  job.exe.run(job.startup, job.scope);  // has learned nothing: any word is as good
  Translator::Marks marks = kMarks;
  marks.target_words = 4;
  Translator translator(job.options, job.scope, marks);
  for (const int beams : {1, 4})
    for (const Translation& t :
         translator.translate({sentence(1), sentence(2), sentence(3)}, {.beams = beams}))
      for (const int32_t word : t.words) EXPECT_LT(word, 4);
  marks.target_words = kWords + 1;
  expect_error(Error::Kind::kInvalidArgument, {"a vocabulary of 13 words; the model has 12"},
               [&] { Translator(job.options, job.scope, marks); });
}

TEST(Translator, RefusesWhatCannotBeTranslated) {
  Job job;
  job.exe.run(job.startup, job.scope);
  Translator translator(job.options, job.scope, kMarks);
  expect_error(Error::Kind::kInvalidArgument, {"sentence 1 is empty"}, [&] {
    translator.translate({{3}, {}}, {});
  });
  expect_error(Error::Kind::kInvalidArgument, {"beams is 0"},
               [&] { translator.translate({{3}}, {.beams = 0}); });
  EXPECT_TRUE(translator.translate({}, {}).empty());
}

}  // namespace
}  // namespace fleetx::train
