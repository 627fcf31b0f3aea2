// Parameters that are with their owners, and come to the others segment by segment.
#include "fleetx/strategies/gather_parameters.h"

#include <gtest/gtest.h>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::gather_parameters_test {
namespace {

using Lines = std::vector<std::string>;

// w1 is the largest, so that rank 0 owns it, and rank 1 the others.
constexpr const char* kText = R"(program
data x : f32[-1,4]
param w1 : f32[4,4]
param w2 : f32[4,3]
param w3 : f32[3,1]
var h : f32[-1,4]
var y : f32[-1,3]
var z : f32[-1,1]
var dz : f32[-1,1]
var dy : f32[-1,3]
var dh : f32[-1,4]
var dw3 : f32[3,1]
var dw2 : f32[4,3]
var dw1 : f32[4,4]

forward:
h = fc(x, w1, _)
y = fc(h, w2, _)
z = fc(y, w3, _)

backward:
dz = scale(z)
dy, dw3, _ = fc_grad(y, w3, _, _, dz)
dh, dw2, _ = fc_grad(h, w2, _, _, dy)
_, dw1, _ = fc_grad(x, w1, _, _, dh)

training:
parameter(w3, dw3, _)
parameter(w2, dw2, _)
parameter(w1, dw1, _)
)";

constexpr const char* kStartup = R"(program
param w1 : f32[4,4]
param w2 : f32[4,3]
param w3 : f32[3,1]

forward:
w1 = fill() {shape=[4,4], value=0.1}
w2 = fill() {shape=[4,3], value=0.2}
w3 = fill() {shape=[3,1], value=0.3}
)";

struct Gathered {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);

  explicit Gathered(int rank, double segment_bytes) {
    Programs programs{main, startup};
    const Owners owners(main, main.training().parameters,
                        {.group = "dp", .rank = rank, .ranks = 2});
    gather_parameters(programs, owners, {.segment_bytes = segment_bytes, .everybody = "dp"});
  }
  static Lines lines(const ir::Program& of, ir::Role role) {
    Lines lines;
    for (const ir::Op& op : of.ops())
      if (op.role == role) lines.push_back(ir::to_text(op));
    return lines;
  }
};

TEST(GatherParameters, ASegmentAhead) {
  const Gathered g(0, 1);
  EXPECT_EQ(
      Gathered::lines(g.main, ir::Role::kForward),
      (Lines{
          R"([w1@0@SENT], gather_ticket = broadcast_start([w1], _) {group="dp"})",
          "w2@EMPTY = empty() {shape=[4,3]}",
          R"([w2@1@SENT], gather_ticket_1 = broadcast_start([w2@EMPTY], _) {group="dp", root=1})",
          R"([w1@0] = broadcast_wait([w1@0@SENT], gather_ticket) {group="dp"})",
          "h = fc(x, w1@0, _)", "w3@EMPTY = empty() {shape=[3,1]}",
          R"([w3@2@SENT], gather_ticket_2 = broadcast_start([w3@EMPTY], _) {group="dp", root=1})",
          R"([w2@1] = broadcast_wait([w2@1@SENT], gather_ticket_1) {group="dp", root=1})",
          "y = fc(h, w2@1, _)",
          R"([w3@2] = broadcast_wait([w3@2@SENT], gather_ticket_2) {group="dp", root=1})",
          "z = fc(y, w3@2, _)"}));
  // w3 is still there.
  EXPECT_EQ(
      Gathered::lines(g.main, ir::Role::kBackward),
      (Lines{
          "w2@EMPTY_1 = empty() {shape=[4,3]}",
          R"([w2@3@SENT], gather_ticket_3 = broadcast_start([w2@EMPTY_1], _) {group="dp", root=1})",
          "dz = scale(z)", "dy, dw3, _ = fc_grad(y, w3@2, _, _, dz)",
          R"([w1@4@SENT], gather_ticket_4 = broadcast_start([w1], _) {group="dp"})",
          R"([w2@3] = broadcast_wait([w2@3@SENT], gather_ticket_3) {group="dp", root=1})",
          "dh, dw2, _ = fc_grad(h, w2@3, _, _, dy)",
          R"([w1@4] = broadcast_wait([w1@4@SENT], gather_ticket_4) {group="dp"})",
          "_, dw1, _ = fc_grad(x, w1@4, _, _, dh)"}));
}

// All in one segment: nothing comes twice.
TEST(GatherParameters, OneSegment) {
  const Gathered g(1, 1e9);
  int calls = 0;
  for (const ir::Op& op : g.main.ops()) calls += op.type() == "broadcast_start";
  EXPECT_EQ(calls, 2);  // of each owner
  EXPECT_EQ(g.main.var("w1").placement, ir::Placement::owned("dp", 0));
  EXPECT_EQ(g.main.var("w3").placement, ir::Placement::owned("dp", 1));
}

// One after the other, and only the owner keeps it.
TEST(GatherParameters, FirstValuesAreThoseOfTheFirstWorker) {
  EXPECT_EQ(Gathered::lines(Gathered(0, 1).startup, ir::Role::kForward),
            (Lines{"w1@RECOMPUTE = fill() {shape=[4,4], value=0.1}",
                   R"([w1@RECOMPUTE] = broadcast([w1@RECOMPUTE]) {group="dp"})",
                   "w1 = assign(w1@RECOMPUTE)", "w2@RECOMPUTE = fill() {shape=[4,3], value=0.2}",
                   R"([w2@RECOMPUTE] = broadcast([w2@RECOMPUTE]) {group="dp"})",
                   "w3@RECOMPUTE = fill() {shape=[3,1], value=0.3}",
                   R"([w3@RECOMPUTE] = broadcast([w3@RECOMPUTE]) {group="dp"})"}));
}

TEST(GatherParameters, UsesBehindTheUpdateAreRefused) {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);
  ir::Rewriter(main).append({.type = "scale",
                             .inputs = {{"x", {"w1"}}},
                             .outputs = {{"out", {"late"}}},
                             .role = ir::Role::kUpdate});
  Programs programs{main, startup};
  const Owners owners(main, main.training().parameters, {.group = "dp", .rank = 1, .ranks = 2});
  testing::expect_error(Error::Kind::kInvalidArgument,
                        {"uses the parameter 'w1' after its update", "use stage 2"},
                        [&] { gather_parameters(programs, owners, {.everybody = "dp"}); });
}

// What goes to another stage of a pipeline is held under the name that it was sent with, although
// the segment is long gone.
TEST(GatherParameters, ASentParameterIsHeld) {
  ir::Program main = ir::parse_text(R"(program
data x : f32[-1,4]
param w1 : f32[4,4] owned(pp, 0)
param w2 : f32[4,4] owned(pp, 0)
param w3 : f32[4,4] owned(pp, 0)
var t : i64[16]
var w1@SENT1 : f32[4,4]
var h : f32[-1,4]
var y : f32[-1,4]
var z : f32[-1,4]
var g : f32[4,4]

forward:
t = send_start([w1], _) {group="pp/2", peer=1}
h = fc(x, w1, _)
y = fc(h, w2, _)
z = fc(y, w3, _)
[w1@SENT1] = send_wait([w1], t) {group="pp/2", peer=1}

backward:
g = fill() {shape=[4,4], value=1.0}

training:
parameter(w1, g, _)
parameter(w2, g, _)
parameter(w3, g, _)
)");
  ir::Program startup;
  Programs programs{main, startup};
  const Owners owners(main, main.training().parameters, {.group = "dp", .rank = 1, .ranks = 2});
  gather_parameters(programs, owners, {.segment_bytes = 1, .everybody = "dp"});
  std::string sent, held;
  for (const ir::Op& op : main.ops()) {
    if (op.type() == "send_start") sent = op.in("xs").front();
    if (op.type() == "send_wait") held = op.in("xs").front();
  }
  EXPECT_EQ(sent, "w1@0");
  EXPECT_EQ(held, sent);
  EXPECT_EQ(main.var("w1").placement, ir::Placement::owned("pp+dp", 0));
  EXPECT_EQ(main.var("w2").placement, ir::Placement::owned("pp+dp", 1));
}

}  // namespace
}  // namespace fleetx::strategies::gather_parameters_test
