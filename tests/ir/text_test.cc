#include "fleetx/ir/text.h"

#include <gtest/gtest.h>

#include "fleetx/ir/proto.h"
#include "tests/support/sample_program.h"

namespace fleetx::ir {
namespace {

std::string error_in(std::string_view text) {
  try {
    (void)parse_text(text, "p.txt");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Text, ReadsAsAPersonWouldWriteIt) {
  const Program p = parse_text(R"(program {seed=3}
# a comment
data x : f32[-1,4] stop_gradient
var y : f32[-1,4]     # another one

forward:
y = scale(x) {scale=2, name="twice"} @ "model.cc":12
)");
  EXPECT_EQ(p.seed(), 3u);
  ASSERT_EQ(p.ops().size(), 1u);
  const Op& op = p.ops().front();
  EXPECT_EQ(op.type(), "scale");
  EXPECT_EQ(op.name, "twice");
  EXPECT_EQ(op.attr<double>("scale"), 2.0);  // a whole number where a float is meant
  EXPECT_EQ(op.attr<double>("bias"), 0.0);   // the default
  EXPECT_EQ(str(op.loc), "model.cc:12");
}

TEST(Text, BothFormsRoundTrip) {
  testing::SampleProgram sample;
  for (const Program* p : {&sample.main, &sample.startup}) {
    const std::string text = to_text(*p);
    EXPECT_EQ(to_text(parse_text(text)), text);
    EXPECT_EQ(to_text(parse_proto(to_proto(*p))), text);
  }
}

TEST(Text, OddNamesAreQuoted) {
  Program main, startup;
  Builder b(main, startup);
  const Var x = b.data("a name, with (everything) = \"odd\" \\ [0]", DType::kF32, {2});
  (void)b.op("scale", {{"x", x}}, {}, {{"out", "_"}});
  const std::string text = to_text(main);
  EXPECT_EQ(to_text(parse_text(text)), text) << text;
}

TEST(Text, StagesAndOwnersAreKept) {
  Program main, startup;
  Builder b(main, startup);
  const Var x = b.data("x", DType::kF32, {2});
  {
    const auto stage = b.in_stage(3);
    (void)b.op("scale", {{"x", x}}, {{"scale", 2.0}}, {{"out", "y"}});
  }
  (void)b.state("m", DType::kF32, {2}, 0.0, Placement::owned("pp", 1));
  const std::string text = to_text(main);
  EXPECT_NE(text.find("y = scale(x) {name=\"scale_0\", scale=2.0} on 3\n"), text.npos) << text;
  EXPECT_NE(text.find("state m : f32[2] stop_gradient owned(pp, 1)"), text.npos) << text;
  EXPECT_EQ(to_text(parse_text(text)), text);
  EXPECT_EQ(to_text(parse_proto(to_proto(main))), text);
  EXPECT_EQ(error_in("program\ndata x : f32[2]\nvar y : f32[2]\ny = scale(x) on -1"),
            "p.txt:4: a stage is expected here");
}

TEST(Text, ErrorsNameTheLineAndTheThing) {
  const std::string head = "program\ndata x : f32[-1,4]\n";
  EXPECT_EQ(error_in("hello"), "p.txt:1: expected 'program', got 'hello'");
  EXPECT_EQ(error_in(""), "p.txt: does not start with 'program'");
  EXPECT_EQ(error_in(head + "var y : f99[2]"),
            "p.txt:3: 'f99' is not a dtype; known: f32 f64 i32 i64 f16 bf16 u8 bool");
  EXPECT_EQ(error_in(head + "data x : f32[2]"), "p.txt:3: the program already has a variable 'x'");
  EXPECT_EQ(error_in(head + "var y : f32[-1,4]\ny = scal(x)").substr(0, 42),
            "p.txt:4: there is no op 'scal'; did you me");
  EXPECT_EQ(error_in(head + "var y : f32[-1,4]\ny = scale(z)"),
            "p.txt:4: the program has no variable 'z'; did you mean 'x', 'y'?");
  EXPECT_EQ(error_in(head + "var y : f32[-1,4]\ny = scale(x) {scale=\"2\"}"),
            "p.txt:4: scale: attribute 'scale' must be a float, got \"2\" (string)");
  EXPECT_EQ(error_in(head + "var y : f32[-1,4]\ny = scale(x) {factor=2}").substr(0, 46),
            "p.txt:4: scale: unknown attribute 'factor' (kn");
  EXPECT_EQ(error_in(head + "var y : f32[-1,5]\ny = scale(x)"),
            "p.txt: scale: output 'out' is f32[-1,4], but 'y' is declared f32[-1,5]");
  EXPECT_EQ(error_in(head + "var y : f32[-1,4]\nvar z : f32[-1,4]\ny = scale(z)\nz = scale(x)"),
            "p.txt: scale: reads 'z' before any op has written it");
  EXPECT_EQ(error_in(head + "var y : f32[-1,4]\ny = scale(x) trailing"),
            "p.txt:4: unexpected 'trailing' at the end of the line");
}

TEST(Proto, DamageIsAnErrorAndNotACrash) {
  testing::SampleProgram sample;
  const std::string good = to_proto(sample.main);
  EXPECT_THROW((void)parse_proto("not a program at all"), Error);
  EXPECT_THROW((void)parse_proto(""), Error);
  int accepted = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    try {
      (void)parse_proto(bad);
      ++accepted;  // the changed byte was in a name or a number that may be anything
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::kCorrupt) << e.what();
    }
  }
  EXPECT_LT(accepted, static_cast<int>(good.size()));
}

}  // namespace
}  // namespace fleetx::ir
