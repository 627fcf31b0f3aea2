// Layers that say how ranks may divide them.
#include "fleetx/strategies/divide_layers.h"

#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::divide_layers_test {
namespace {

using Lines = std::vector<std::string>;

constexpr const char* kText = R"(program
data x : f32[-1,8]
param w1 : f32[8,8] {divide=1}
param b1 : f32[8]
param w2 : f32[8,6] {divide=0}
param b2 : f32[6]
param w3 : f32[6,2]
var h : f32[-1,8]
var a : f32[-1,8]
var y : f32[-1,6]
var z : f32[-1,2]

forward:
h = fc(x, w1, b1) on 3
a = relu(h)
y = fc(a, w2, b2)
z = fc(y, w3, _)
)";

constexpr const char* kStartup = R"(program
param w1 : f32[8,8]
param b1 : f32[8]
param w2 : f32[8,6]
param b2 : f32[6]
param w3 : f32[6,2]

forward:
w1 = uniform() {shape=[8,8]}
b1 = fill() {shape=[8], value=0.5}
w2 = uniform() {shape=[8,6]}
b2 = fill() {shape=[6]}
w3 = uniform() {shape=[6,2]}
)";

struct Divided {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);

  explicit Divided(int ranks, const ir::Program* instead = nullptr) {
    if (instead != nullptr) main = *instead;
    Programs programs{main, startup};
    divide_layers(programs, ranks);
  }
};

Lines lines_of(const ir::Program& program) {
  Lines lines;
  for (const ir::Op& op : program.ops()) lines.push_back(ir::to_text(op));
  return lines;
}

TEST(DivideLayers, APairByColumnsAndByRows) {
  const Divided d(2);
  EXPECT_EQ(lines_of(d.main),
            (Lines{R"(x@PARTS = group_identity(x) {group="mp", ranks=2} on 3)",
                   "h = fc(x@PARTS, w1, b1) on 3", "a = relu(h)", "y@OWN = fc(a, w2, _)",
                   R"(y@SUM = group_sum(y@OWN) {group="mp", ranks=2})",
                   "y = elementwise_add(y@SUM, b2)", "z = fc(y, w3, _)"}));
  EXPECT_EQ(d.main.var("w1").placement, ir::Placement::sharded("mp", 1));
  EXPECT_EQ(d.main.var("w1").type.shape, Shape({8, 4}));
  EXPECT_EQ(d.main.var("b1").placement, ir::Placement::sharded("mp", 0));
  EXPECT_EQ(d.main.var("w2").type.shape, Shape({4, 6}));
  EXPECT_EQ(d.main.var("h").type.shape, Shape({-1, 4}));
  EXPECT_EQ(d.main.var("a").type.shape, Shape({-1, 4}));
  EXPECT_EQ(d.main.var("y").type.shape, Shape({-1, 6}));
  for (const char* whole : {"b2", "w3"}) EXPECT_TRUE(d.main.var(whole).placement.is_replicated());
  EXPECT_FALSE(has_divisible_layers(d.main));
}

// Drawn whole, so that the values do not depend on the ranks; of a constant every part is the same.
TEST(DivideLayers, FirstValuesAreThoseOfWholeLayers) {
  EXPECT_EQ(lines_of(Divided(2).startup),
            (Lines{"w1@WHOLE = uniform(_) {shape=[8,8]}",
                   R"(w1 = group_part(w1@WHOLE) {axis=1, group="mp", ranks=2})",
                   "b1 = fill() {shape=[4], value=0.5}", "w2@WHOLE = uniform(_) {shape=[8,6]}",
                   R"(w2 = group_part(w2@WHOLE) {axis=0, group="mp", ranks=2})",
                   "b2 = fill() {shape=[6]}", "w3 = uniform(_) {shape=[6,2]}"}));
}

TEST(DivideLayers, WhatCannotBeDividedIsExplained) {
  const auto error = [](const std::string& from, const std::string& to, int ranks,
                        const std::string& part) {
    std::string text = kText;
    text.replace(text.find(from), from.size(), to);
    const ir::Program main = ir::parse_text(text);
    EXPECT_TRUE(has_divisible_layers(main));
    testing::expect_error(Error::Kind::kInvalidArgument, {part}, [&] { Divided(ranks, &main); });
  };
  error("z", "z", 3, "which cannot be divided between 3 ranks");
  error("{divide=1}", "", 2, "is to be divided by rows, but 'a', which it reads, is whole");
  error("{divide=0}", "{divide=1}", 2, "is to be divided by columns, but 'a'");
}

TEST(DivideLayers, ALayerThatSaysNothingStaysWhole) {
  const ir::Program main = ir::parse_text(R"(program
data x : f32[-1,8]
param w : f32[8,8]
var h : f32[-1,8]

forward:
h = fc(x, w, _)
)");
  EXPECT_FALSE(has_divisible_layers(main));
}

}  // namespace
}  // namespace fleetx::strategies::divide_layers_test
