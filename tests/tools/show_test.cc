#include <gtest/gtest.h>

#include <limits>

#include "fleetx/ir/proto.h"
#include "fleetx/ir/text.h"
#include "fleetx/tensor/safetensors.h"
#include "fleetx/train/checkpoint.h"
#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

TEST(Show, TextAndProtobufFormGiveTheSameText) {
  const TempDir folder;
  const std::string text = folder.write("program.txt", kProgram);
  const std::string proto = folder.write("program.pb", ir::to_proto(ir::parse_text(kProgram)));
  const ToolResult a = run_tool({"show", text}), b = run_tool({"show", proto});
  ASSERT_EQ(a.code, 0) << a.err;
  ASSERT_EQ(b.code, 0) << b.err;
  const auto body = [](const std::string& s) { return s.substr(s.find('\n')); };
  EXPECT_EQ(body(a.out), body(b.out));
  EXPECT_TRUE(contains(a.out, "2 ops, 1 parameters (4 values"));
  EXPECT_EQ(ir::parse_text(a.out), ir::parse_text(kProgram));
}

TEST(Show, ThePrefixOfAnInferenceModel) {
  const TempDir folder;
  folder.write("saved.pdmodel", ir::to_proto(ir::parse_text(kProgram)));
  const ToolResult r = run_tool({"show", folder / "saved"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(ir::parse_text(r.out), ir::parse_text(kProgram));
}

TEST(Show, TensorsWithTheirRange) {
  const TempDir folder;
  Safetensors file;
  file.tensors["w"] = Tensor::of<float>({2, 2}, {1, 2, 3, 6});
  file.tensors["bad"] = Tensor::of<float>({2}, {1, std::numeric_limits<float>::quiet_NaN()});
  file.metadata["made_by"] = "test";
  save_safetensors(folder / "t.safetensors", file);
  const ToolResult r = run_tool({"show", folder / "t.safetensors"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "2 tensors, 6 elements"));
  EXPECT_TRUE(contains(r.out, "# made_by: test"));
  EXPECT_TRUE(contains(r.out, "w     f32    [2,2]     16    1     3    6           0"));
  EXPECT_TRUE(contains(r.out, "bad   f32    [2]        8    1     1    1           1"));
}

struct SavedModel {
  TempDir folder;
  std::string path = folder / "model";

  SavedModel() {
    const ir::Program program = ir::parse_text(kProgram);
    runtime::Scope scope;
    scope.set("w", Tensor::of<float>({4}, {1, 2, 3, 4}));
    train::save_model(path, program, {"y"}, scope);
  }
};

TEST(Show, SavedModel) {
  const SavedModel model;
  const ToolResult r = run_tool({"show", model.path});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"fleetx-model, complete", "targets: y", "elementwise_add", "1 tensors"})
    EXPECT_TRUE(contains(r.out, part));
}

TEST(Show, DamagedModelIsAnError) {
  const SavedModel model;
  std::filesystem::resize_file(model.path + "/parameters.safetensors", 40);
  expect_error(run_tool({"show", model.path}), 2, "parameters.safetensors");
}

TEST(Show, NewestCheckpointOfAFolder) {
  const TempDir folder;
  const ir::Program program = ir::parse_text(kProgram);
  runtime::Scope scope;
  scope.set("w", Tensor::of<float>({4}, {1, 2, 3, 4}));
  for (const int64_t step : {9, 12}) {
    train::State state;
    state.step = step;
    train::save_checkpoint(folder / "run", scope, {{"main", &program}}, state);
  }
  const ToolResult r = run_tool({"show", folder / "run"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "fleetx-checkpoint"));
  EXPECT_TRUE(contains(r.out, "step: 12"));
  EXPECT_EQ(run_tool({"plan", folder / "run/step-00000012", "--batch", "2"}).code, 0);
}

TEST(Show, DamagedAndMissingFilesAreErrors) {
  const TempDir folder;
  expect_error(run_tool({"show", folder / "nothing"}), 2, "there is no file");
  expect_error(run_tool({"show", folder.path()}), 2, "is no saved model");
  expect_error(run_tool({"show", folder.write("empty", "")}), 2, "the file is empty");
  expect_error(run_tool({"show", folder.write("text", "program\nvar ???\n")}), 2, "text:2:");
  const std::string proto = ir::to_proto(ir::parse_text(kProgram));
  expect_error(run_tool({"show", folder.write("cut.pb", proto.substr(0, proto.size() / 2))}), 2,
               "cut.pb");
  expect_error(run_tool({"show", folder.write("bad.safetensors", std::string(100, '\xff'))}), 2,
               "bad.safetensors");
  expect_error(run_tool({"show", "/dev/null"}), 2, "/dev/null");
}

TEST(Show, FlippedBytesNeverCrash) {
  const TempDir folder;
  std::string proto = ir::to_proto(ir::parse_text(kProgram));
  for (size_t i = 0; i < proto.size(); i += 7) {
    std::string damaged = proto;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    const ToolResult r = run_tool({"show", folder.write("p.pb", damaged)});
    EXPECT_TRUE(r.code == 0 || r.code == 2) << "byte " << i << ": " << r.code << " " << r.err;
  }
}

}  // namespace
}  // namespace fleetx::testing
