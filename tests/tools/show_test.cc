#include <gtest/gtest.h>

#include <limits>

#include "fleetx/ir/proto.h"
#include "fleetx/ir/text.h"
#include "fleetx/tensor/safetensors.h"
#include "tests/tools/tool.h"

namespace fleetx::testing {
namespace {

const char* const kProgram =
    "program {seed=7}\n"
    "data x : f32[-1,4] stop_gradient\n"
    "param w : f32[4]\n"
    "var s : f32[-1,4]\n"
    "var y : f32[-1,4]\n"
    "forward:\n"
    "s = scale(x) {scale=2.0}\n"
    "y = elementwise_add(s, w)\n";

TEST(Show, TextAndProtobufFormGiveTheSameText) {
  const TemporaryFolder folder;
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

TEST(Show, TensorsWithTheirRange) {
  const TemporaryFolder folder;
  Safetensors file;
  file.tensors["w"] = Tensor::of<float>({2, 2}, {1, 2, 3, 6});
  file.tensors["bad"] = Tensor::of<float>({2}, {1, std::numeric_limits<float>::quiet_NaN()});
  file.metadata["made_by"] = "test";
  save_safetensors(folder.path("t.safetensors"), file);
  const ToolResult r = run_tool({"show", folder.path("t.safetensors")});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "2 tensors, 6 elements"));
  EXPECT_TRUE(contains(r.out, "# made_by: test"));
  EXPECT_TRUE(contains(r.out, "w     f32    [2,2]     16    1     3    6           0"));
  EXPECT_TRUE(contains(r.out, "bad   f32    [2]        8    1     1    1           1"));
}

TEST(Show, FolderShowsEveryFileItKnows) {
  const TemporaryFolder folder;
  folder.write("program.pb", ir::to_proto(ir::parse_text(kProgram)));
  folder.write("manifest.json", "{\"step\": 12}");
  folder.write("notes.md", "not shown");
  save_safetensors(folder.path("p.safetensors"),
                   {.tensors = {{"w", Tensor::of<float>({1}, {5})}}, .metadata = {}});
  const ToolResult r = run_tool({"show", folder.path("")});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "\"step\": 12"));
  EXPECT_TRUE(contains(r.out, "elementwise_add"));
  EXPECT_TRUE(contains(r.out, "1 tensors"));
  EXPECT_FALSE(contains(r.out, "not shown"));
}

TEST(Show, DamagedAndMissingFilesAreErrors) {
  const TemporaryFolder folder;
  expect_error(run_tool({"show", folder.path("nothing")}), 2, "there is no file");
  expect_error(run_tool({"show", folder.path("")}), 2, "holds no saved model");
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
  const TemporaryFolder folder;
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
