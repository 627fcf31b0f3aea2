#include "fleetx/train/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "fleetx/base/file.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/train/sealed_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"
#include "tests/train/toy.h"

namespace fleetx::train {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::TempDir;
constexpr auto kCorrupt = Error::Kind::kCorrupt;

// Sum of a scope, bit by bit: to see that nothing changed on the way.
uint64_t digest(const runtime::Scope& scope) {
  uint64_t sum = 0;
  for (const std::string& name : scope.names()) {
    const Tensor t = scope.get(name);
    sum = stable_hash(name, sum ^ 1);
    sum = stable_hash({static_cast<const char*>(t.raw()), t.bytes()}, sum);
  }
  return sum;
}

class Checkpoint : public ::testing::Test {
 protected:
  Checkpoint() {
    exe_.run(toy_.startup, scope_);
    data::Loader loader(toy_data(30), {.batch = 10});
    for (int i = 0; i < 3; ++i) exe_.run(toy_.main, scope_, loader.next().feeds);
  }
  std::string save(int64_t step, int keep = 3) {
    return save_checkpoint(
        dir_ / "run", scope_, programs_,
        {.step = step, .position = {2, 40}, .seed = ~uint64_t{0}, .texts = {{"note.csv", "a,b\n"}}},
        {.keep = keep});
  }

  const TempDir dir_;
  Toy toy_;
  runtime::Scope scope_;
  runtime::Executor exe_;
  const Programs programs_{{"main", &toy_.main}, {"startup", &toy_.startup}};
};

TEST_F(Checkpoint, RestoresEveryBit) {
  const std::string path = save(3);
  EXPECT_EQ(path, dir_ / "run/step-00000003");
  for (const char* file : {"parameters.safetensors", "state.safetensors", "main.pb", "main.txt",
                           "startup.pb", "note.csv", "manifest.json"})
    EXPECT_TRUE(fs::exists(path + "/" + file)) << file;
  for (const Programs& programs : {programs_, Programs{}}) {
    runtime::Scope loaded;
    const State state = load_checkpoint(path, loaded, programs);
    EXPECT_EQ(digest(loaded), digest(scope_));
    EXPECT_EQ(state.step, 3);
    EXPECT_EQ(state.position, (data::Position{2, 40}));
    EXPECT_EQ(state.seed, ~uint64_t{0});
    EXPECT_EQ(state.texts, (std::map<std::string, std::string>{{"note.csv", "a,b\n"}}));
  }
  EXPECT_EQ(load_program(path, "main"), toy_.main);
  expect_error(kCorrupt, {"no other.pb"}, [&] { load_program(path, "other"); });
}

TEST_F(Checkpoint, KeepsTheLastOnes) {
  EXPECT_EQ(latest_checkpoint(dir_ / "run"), "");
  for (const int64_t step : {5, 10, 15, 123456789}) save(step, 2);
  EXPECT_EQ(latest_checkpoint(dir_ / "run"), dir_ / "run/step-123456789");
  EXPECT_TRUE(fs::exists(dir_ / "run/step-00000015"));
  EXPECT_FALSE(fs::exists(dir_ / "run/step-00000010"));
  save(10, 2);
  EXPECT_TRUE(fs::exists(dir_ / "run/step-00000010")) << "what was just written stays";
}

TEST_F(Checkpoint, RemovesCheckpointsAndNothingElse) {
  save(5);
  write_file(dir_ / "run/curves.png", "");
  fs::create_directory(dir_ / "run/step-by-step");
  fs::create_directory(dir_ / "run/step-00000001");  // without a manifest it is none
  remove_checkpoints(dir_ / "run");
  EXPECT_EQ(latest_checkpoint(dir_ / "run"), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "run"), fs::directory_iterator()), 3);
  remove_checkpoints(dir_ / "nowhere");
}

TEST_F(Checkpoint, TheSameStepAgainReplacesIt) {
  save(7);
  scope_.set("lr", Tensor::scalar(0.5f));
  const std::string path = save(7);
  runtime::Scope loaded;
  load_checkpoint(path, loaded);
  EXPECT_EQ(loaded.get("lr").item<float>(), 0.5f);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "run"), fs::directory_iterator()), 1);
}

TEST_F(Checkpoint, EveryDamageIsNamed) {
  const std::string path = save(3);
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string file = entry.path().string(), good = read_file(file);
    for (const size_t at : {size_t{0}, good.size() / 2, good.size() - 1}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 4);
      write_file(file, bad);
      // The last byte of the manifest is a line end, which means nothing.
      if (file.ends_with("manifest.json") && at == good.size() - 1) continue;
      runtime::Scope scope;
      expect_error(kCorrupt, {file}, [&] { load_checkpoint(path, scope); });
      EXPECT_TRUE(scope.names().empty()) << "nothing is loaded from a damaged checkpoint";
    }
    write_file(file, good.substr(0, good.size() - 2));
    runtime::Scope scope;
    expect_error(kCorrupt, {file}, [&] { load_checkpoint(path, scope); });
    write_file(file, good);
    load_checkpoint(path, scope);
  }
  fs::remove(path + "/main.pb");
  runtime::Scope scope;
  expect_error(kCorrupt, {"main.pb", "missing"}, [&] { load_checkpoint(path, scope); });
  expect_error(kArgument, {"nowhere/manifest.json"},
               [&] { load_checkpoint(dir_ / "nowhere", scope); });
}

TEST_F(Checkpoint, AnotherProgramIsRefused) {
  const std::string path = save(3);
  const Toy wider(9);
  runtime::Scope scope;
  expect_error(kArgument, {"fc_0.w_0", "f32[4,8]", "f32[4,9]"}, [&] {
    load_checkpoint(path, scope, {{"main", &wider.main}});
  });
  Toy more;
  more.b.state("extra", f32, {2});
  expect_error(kArgument, {"no variable 'extra'"}, [&] {
    load_checkpoint(path, scope, {{"main", &more.main}});
  });
  EXPECT_TRUE(scope.names().empty());
  runtime::Scope empty;
  expect_error(kArgument, {"startup"}, [&] { save_checkpoint(dir_ / "e", empty, programs_, {}); });
  EXPECT_FALSE(fs::exists(dir_ / "e/step-00000000"));
  EXPECT_FALSE(fs::exists(dir_ / "e")) << "nothing stays";
}

TEST_F(Checkpoint, AnInterruptedSaveLeavesThePreviousOne) {
  save(1);
  {
    FolderWriter torn(dir_ / "run/step-00000002", "fleetx-checkpoint");
    write_file(torn.file("main.pb"), "half of");
  }
  fs::create_directory(dir_ / "run/.tmp-step-00000002");  // as a kill would leave it
  write_file(dir_ / "run/.tmp-step-00000002/parameters.safetensors", "half of");
  EXPECT_EQ(latest_checkpoint(dir_ / "run"), dir_ / "run/step-00000001");
  EXPECT_EQ(latest_checkpoint(dir_ / "run"), dir_ / "run/step-00000001");
  save(2);
  runtime::Scope scope;
  EXPECT_EQ(load_checkpoint(latest_checkpoint(dir_ / "run"), scope).step, 2);
  EXPECT_FALSE(fs::exists(dir_ / "run/.tmp-step-00000002"));
}

TEST_F(Checkpoint, AKilledProcessLeavesNothingDamaged) {
  save(1);
  for (int trial = 0; trial < 8; ++trial) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int64_t step = 2;; ++step) save(step, 2);
    }
    usleep(static_cast<useconds_t>(20000 + 7000 * trial));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    runtime::Scope scope;
    const std::string latest = latest_checkpoint(dir_ / "run");
    load_checkpoint(latest, scope, programs_);
    EXPECT_EQ(digest(scope), digest(scope_));
  }
}

TEST_F(Checkpoint, ModelsArePrunedToTheirTargets) {
  save_model(dir_ / "model", toy_.main, {toy_.logits.name()}, scope_);
  runtime::Scope scope;
  const Model model = load_model(dir_ / "model", scope);
  EXPECT_EQ(model.feeds, ir::Names{"x"});
  EXPECT_EQ(model.targets, ir::Names{toy_.logits.name()});
  EXPECT_FALSE(scope.has("lr"));
  EXPECT_TRUE(scope.has("fc_0.w_0"));
  const runtime::Feeds feeds{{"x", Tensor::of<float>({2, 4}, {1, 0, 0, 0, 0, 1, 0, 0})}};
  runtime::Executor other;
  const Tensor a = other.run(model.program, scope, feeds, model.targets)[0];
  const Tensor b = other.run(model.program, scope, feeds, model.targets)[0].clone();
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << "dropout is off";
  EXPECT_EQ(a.shape(), (Shape{2, 3}));
  expect_error(kCorrupt, {"fleetx-model", "fleetx-checkpoint"},
               [&] { load_checkpoint(dir_ / "model", scope); });
  expect_error(kArgument, {"nope"}, [&] { save_model(dir_ / "m", toy_.main, {"nope"}, scope_); });
}

TEST_F(Checkpoint, ParametersAlone) {
  save_parameters(dir_ / "p.safetensors", toy_.main, scope_);
  runtime::Scope scope;
  load_parameters(dir_ / "p.safetensors", toy_.main, scope);
  EXPECT_EQ(scope.names().size(), toy_.main.parameters().size());
}

}  // namespace
}  // namespace fleetx::train
