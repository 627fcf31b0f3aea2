#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kText = R"(program
data x : f32[-1,4]
data y : f32[-1,4]
state s : f32[4]
var a : f32[-1,4]
var out : f32[-1,4]

forward:
a = scale(x)
out = elementwise_add(a, y)
s = scale(s)
)";

ir::TensorType f32_type(Shape shape) { return {.dtype = f32, .shape = std::move(shape)}; }

TEST(KnownShapes, CarriesTheShapesOfTheFeeds) {
  ir::Program program = ir::parse_text(kText);
  known_shapes(program, {.feeds = {{"x", f32_type({32, 4})}, {"y", f32_type({1, 4})}}});
  EXPECT_EQ(program, ir::parse_text(R"(program
data x : f32[32,4]
data y : f32[1,4]
state s : f32[4]
var a : f32[32,4]
var out : f32[32,4]

forward:
a = scale(x)
out = elementwise_add(a, y)
s = scale(s)
)"));
}

TEST(KnownShapes, NothingWhereAFeedIsMissing) {
  ir::Program program = ir::parse_text(kText);
  known_shapes(program, {});
  known_shapes(program, {.feeds = {{"x", f32_type({32, 4})}}});
  EXPECT_EQ(program, ir::parse_text(kText));
}

TEST(KnownShapes, FeedsThatDoNotFitEachOtherAreAnErrorOfTheOp) {
  ir::Program program = ir::parse_text(kText);
  const Options options{.feeds = {{"x", f32_type({32, 4})}, {"y", f32_type({3, 4})}}};
  try {
    known_shapes(program, options);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("elementwise_add"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace fleetx::passes
