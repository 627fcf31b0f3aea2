#include "fleetx/ir/rewriter.h"

#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/ir/verifier.h"

namespace fleetx::ir {
namespace {

constexpr const char* kText = R"(program
data x : f32[4]
state on : bool[1]
var a : f32[4]
var b : f32[4]

forward:
a = scale(x) {scale=2.0}
b = scale(a) {scale=3.0}
)";

std::vector<std::string> lines_of(const Program& p) {
  std::vector<std::string> lines;
  for (const Op& op : p.ops()) lines.push_back(to_text(op));
  return lines;
}
using Lines = std::vector<std::string>;

TEST(Rewriter, EveryChangeMakesANewVersion) {
  Program p = parse_text(kText);
  Rewriter rw(p);
  uint64_t version = p.version();
  const auto changed = [&] { return std::exchange(version, p.version()) != p.version(); };
  EXPECT_FALSE(changed());
  rw.set_attr(rw.begin(), "scale", 4.0);
  EXPECT_TRUE(changed());
  rw.set_guard(std::next(rw.begin()), "on");
  EXPECT_TRUE(changed());
  rw.edit_var("a").stop_gradient = true;
  EXPECT_TRUE(changed());
  rw.edit_training();
  EXPECT_TRUE(changed());
  rw.move(std::next(rw.begin()), rw.end());
  EXPECT_TRUE(changed());
}

TEST(Rewriter, InsertMakesTheVariablesThatAreMissing) {
  Program p = parse_text(kText);
  Rewriter rw(p);
  const auto added = rw.insert(std::next(rw.begin()), {.type = "scale",
                                                       .inputs = {{"x", {"a"}}},
                                                       .outputs = {{"out", {"c"}}},
                                                       .attrs = {{"scale", 0.5}}});
  EXPECT_EQ(p.var("c").type, p.var("a").type);
  rw.replace_later_uses(std::next(added), "a", "c");
  EXPECT_EQ(lines_of(p), (Lines{"a = scale(x) {scale=2.0}", "c = scale(a) {scale=0.5}",
                                "b = scale(c) {scale=3.0}"}));
  verify(p);
}

TEST(Rewriter, RefusesWhatDoesNotFit) {
  Program p = parse_text(kText);
  Rewriter rw(p);
  EXPECT_THROW(rw.append({.type = "no_such_op"}), Error);
  EXPECT_THROW(rw.append({.type = "scale", .inputs = {{"x", {"nothing"}}}}), Error);
  EXPECT_THROW(rw.append({.type = "scale",
                          .inputs = {{"x", {"a"}}},
                          .outputs = {{"out", {"d"}}},
                          .attrs = {{"no_such_attribute", 1}}}),
               Error);
  EXPECT_THROW(rw.set_attr(rw.begin(), "scale", "two"), Error);
  EXPECT_THROW(rw.edit_var("nothing"), Error);
  EXPECT_THROW(rw.erase_var("nothing"), Error);
}

TEST(Rewriter, GuardsAreRenamedLikeInputs) {
  Program p = parse_text(kText);
  Rewriter rw(p);
  VarInfo other = p.var("on");
  other.name = "other";
  rw.add_var(other);
  rw.set_guard(std::next(rw.begin()), "on");
  rw.replace_later_uses(rw.begin(), "on", "other");
  EXPECT_EQ(p.ops().back().guard, "other");
  verify(p);
}

TEST(Rewriter, FindsWritersAndParts) {
  Program p = parse_text(kText);
  Rewriter rw(p);
  EXPECT_EQ(rw.last_writer("b"), std::next(rw.begin()));
  EXPECT_EQ(rw.last_writer("x"), rw.end());
  EXPECT_EQ(rw.first_of(Role::kForward), rw.begin());
  EXPECT_EQ(rw.first_of(Role::kUpdate), rw.end());
}

TEST(Rewriter, DropsWhatNoOpMentions) {
  Program p = parse_text(kText);
  Rewriter rw(p);
  rw.set_guard(std::next(rw.begin()), "on");
  rw.erase(rw.begin());
  rw.set_inputs(rw.begin(), "x", {"x"});
  rw.drop_unused_vars();
  EXPECT_EQ(p.find("a"), nullptr);
  EXPECT_NE(p.find("on"), nullptr);  // a guard is mentioned
  EXPECT_NE(p.find("x"), nullptr);
}

TEST(Rewriter, FreshNamesAreFresh) {
  Program p = parse_text(kText);
  const Rewriter rw(p);
  EXPECT_EQ(rw.fresh_name("c"), "c");
  EXPECT_EQ(rw.fresh_name("a"), "a_1");
}

}  // namespace
}  // namespace fleetx::ir
