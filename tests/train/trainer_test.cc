#include "fleetx/train/trainer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "fleetx/base/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"
#include "tests/train/toy.h"

namespace fleetx::train {
namespace {

using testing::expect_error;
using testing::TempDir;

constexpr data::LoaderOptions kTrain{.batch = 8, .shuffle = true, .seed = 5, .threads = 2};

using Losses = std::map<int64_t, double>;

TrainerOptions quiet(Losses& losses) {
  TrainerOptions o;
  o.epochs = 4;
  o.log_every = 5;
  o.seed = 17;
  o.out = nullptr;
  o.on_step = [&losses](int64_t step, double loss) { losses[step] = loss; };
  return o;
}

struct Outcome {
  Losses losses;
  History history;
  Metrics test;
};

template <class Net = Toy>
Outcome run(const std::function<void(TrainerOptions&)>& change = {}) {
  Outcome result;
  Net toy;
  TrainerOptions options = quiet(result.losses);
  if (change) change(options);
  Trainer trainer(toy.b, toy.loss, toy.accuracy, options);
  data::Loader train(toy_data(100, 1, Net::kWidth), kTrain),
      test(toy_data(60, 2, Net::kWidth), {.batch = 25});
  trainer.fit(train, &test);
  result.history = trainer.history();
  result.test = trainer.evaluate(test);
  return result;
}

TEST(Trainer, Learns) {
  const Outcome r = run();
  EXPECT_EQ(r.losses.size(), 4u * 13);
  EXPECT_LT(r.losses.at(52), r.losses.at(1));
  EXPECT_GT(r.test.accuracy, 0.8);
  EXPECT_EQ(r.test.samples, 60);
  std::vector<int64_t> train_steps, test_steps;
  for (const Record& record : r.history.records())
    (record.split == "train" ? train_steps : test_steps).push_back(record.step);
  EXPECT_EQ(test_steps, (std::vector<int64_t>{13, 26, 39, 52}));
  EXPECT_EQ(train_steps,
            (std::vector<int64_t>{5, 10, 13, 15, 20, 25, 26, 30, 35, 39, 40, 45, 50, 52}));
}

// The records of its history, in one file.
TEST(Trainer, WritesEvents) {
  const TempDir dir;
  const Outcome r = run([&](TrainerOptions& o) { o.event_dir = dir.path() + "/runs"; });
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path() + "/runs"))
    files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  const std::string bytes = read_file(files[0]);
  size_t at = 0;
  for (const Record& record : r.history.records()) {
    // tag, simple_value of the loss; then the same of the accuracy
    for (const auto& [name, value] :
         {std::pair{"/loss", record.loss}, std::pair{"/accuracy", record.accuracy}}) {
      const std::string tag = record.split + name + "\x15";
      at = bytes.find(tag, at);
      ASSERT_NE(at, std::string::npos) << tag << " of step " << record.step;
      float written = 0;
      std::memcpy(&written, bytes.data() + at + tag.size(), sizeof written);
      EXPECT_FLOAT_EQ(written, static_cast<float>(value)) << tag;
    }
  }
  EXPECT_EQ(bytes.find("/loss", at), std::string::npos) << "more than the history has";
}

TEST(Trainer, TheSameRunTwiceGivesTheSameBits) {
  EXPECT_EQ(run().losses, run().losses);
  EXPECT_NE(run().losses, run([](TrainerOptions& o) { o.seed = 18; }).losses);
}

template <class Net>
void expect_the_same_when_resumed(std::initializer_list<int64_t> stops) {
  const Outcome whole = run<Net>();
  for (const int64_t stop : stops) {
    SCOPED_TRACE(stop);
    const TempDir dir;
    Losses parts = run<Net>([&](TrainerOptions& o) {
                     o.checkpoint_dir = dir / "run";
                     o.max_steps = stop;
                   }).losses;
    EXPECT_EQ(parts.size(), static_cast<size_t>(stop));
    const Outcome rest = run<Net>([&](TrainerOptions& o) {
      o.checkpoint_dir = dir / "run";
      o.resume = true;
    });
    EXPECT_EQ(rest.losses.begin()->first, stop + 1);
    parts.merge(Losses(rest.losses));
    EXPECT_EQ(parts, whole.losses);
    EXPECT_EQ(rest.test.loss, whole.test.loss);
    EXPECT_EQ(rest.history.records().front().step, std::min<int64_t>(stop, 5)) << "history goes on";
  }
}

TEST(Trainer, AStoppedAndResumedRunHasTheSameLosses) {
  expect_the_same_when_resumed<Toy>({1, 7, 13, 20, 51});
}

// Statistics of batch norm, moments of adam and the place in the schedule are state as well;
// weights are saved row-major and loaded into the layouts of their kernels.
TEST(Trainer, AResumedConvolutionNetHasTheSameLosses) {
  expect_the_same_when_resumed<ConvToy>({20});
}

TEST(Trainer, CheckpointsComeAsOftenAsAsked) {
  const TempDir dir;
  run([&](TrainerOptions& o) {
    o.checkpoint_dir = dir / "run";
    o.checkpoint_every = 10;
    o.keep = 100;
  });
  std::set<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(dir / "run"))
    names.insert(e.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"step-00000010", "step-00000020", "step-00000030",
                                          "step-00000040", "step-00000050", "step-00000052"}));
}

TEST(Trainer, RunsAreNotMixed) {
  const TempDir dir;
  const auto into = [&](TrainerOptions& o) {
    o.checkpoint_dir = dir / "run";
    o.max_steps = 3;
  };
  run(into);
  expect_error(kArgument, {"step-00000003", "resume"}, [&] { run(into); });
  expect_error(kArgument, {"seed 17", "99"}, [&] {
    run([&](TrainerOptions& o) {
      into(o);
      o.resume = true;
      o.seed = 99;
    });
  });
}

TEST(Trainer, MistakesAreNamed) {
  expect_error(kArgument, {"epochs is 0"}, [] { run([](TrainerOptions& o) { o.epochs = 0; }); });
  expect_error(kArgument, {"checkpoint_dir"},
               [] { run([](TrainerOptions& o) { o.resume = true; }); });
  Toy toy;
  Losses losses;
  Trainer trainer(toy.b, toy.loss, toy.accuracy, quiet(losses));
  trainer.scope().set("lr", Tensor::scalar(1e30f));
  data::Loader train(toy_data(100), kTrain);
  expect_error(kArgument, {"the loss is", "step 2", "FLEETX_CHECK_FINITE"},
               [&] { trainer.fit(train); });
}

TEST(Trainer, PlainLinesWhereTheOutputIsNoTerminal) {
  const TempDir dir;
  std::FILE* out = std::fopen((dir / "log").c_str(), "w+");
  run([&](TrainerOptions& o) { o.out = out; });
  std::rewind(out);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10 + 4) << text;
  EXPECT_TRUE(text.starts_with("epoch 1/4  step  5/13  loss ")) << text;
  EXPECT_NE(text.find("epoch 4/4  step 13/13  loss "), std::string::npos) << text;
  EXPECT_NE(text.find("test acc "), std::string::npos) << text;
}

}  // namespace
}  // namespace fleetx::train
