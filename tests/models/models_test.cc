// Parameters and shapes of the model zoo. The counts are those of the papers' reference versions.
#include <gtest/gtest.h>

#include "fleetx/ir/verifier.h"
#include "fleetx/models/bert.h"
#include "fleetx/models/lenet.h"
#include "fleetx/models/mlp.h"
#include "fleetx/models/resnet.h"
#include "fleetx/models/vgg.h"
#include "fleetx/models/wide_deep.h"

namespace fleetx::models {
namespace {

struct Size {
  size_t tensors = 0;
  int64_t values = 0;
  bool operator==(const Size&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Size& s) {
  return out << s.tensors << " tensors, " << s.values << " values";
}

struct Net {
  ir::Program main, startup;
  ir::Builder b{main, startup};

  Size size() const {
    Size s;
    for (const ir::VarInfo* p : main.parameters()) {
      ++s.tensors;
      s.values += p->type.shape.numel();
    }
    return s;
  }
  void expect_checkpoints(const ir::Names& names, size_t count) const {
    EXPECT_EQ(names.size(), count);
    for (const std::string& name : names) EXPECT_NE(main.find(name), nullptr) << name;
  }
  ~Net() {
    EXPECT_NO_THROW(ir::verify(main));
    EXPECT_NO_THROW(ir::verify(startup));
  }
};

TEST(ResNet, SizesOfAllDepths) {
  struct Case {
    int depth;
    Size size;
    size_t blocks;
  };
  for (const Case& c : {Case{18, {62, 11'689'512}, 8}, Case{34, {110, 21'797'672}, 16},
                        Case{50, {161, 25'557'032}, 16}, Case{101, {314, 44'549'160}, 33}}) {
    Net net;
    const Network r = resnet(net.b.data("image", f32, {-1, 3, 224, 224}), {.depth = c.depth});
    EXPECT_EQ(r.logits.shape(), (Shape{-1, 1000}));
    EXPECT_EQ(net.size(), c.size) << "depth " << c.depth;
    net.expect_checkpoints(r.checkpoints, c.blocks);
  }
}

TEST(ResNet, StridesInThe3x3) {
  Net net;
  resnet(net.b.data("image", f32, {-1, 3, 224, 224}), {.depth = 50});
  int strided = 0;
  for (const ir::Op& op : net.main.ops()) {
    if (op.type() != "conv2d" || op.attr<ir::Ints>("stride") == ir::Ints{1, 1}) continue;
    const Shape& w = net.main.var(op.in("w")[0]).type.shape;
    EXPECT_TRUE(w[2] > 1 || op.name.ends_with("_branch1")) << op.name;
    ++strided;
  }
  EXPECT_EQ(strided, 1 + 3 + 3);  // stem, three stages, their shortcuts
}

TEST(ResNet, SmallImages) {
  Net net;
  const Network r = resnet(net.b.data("image", f32, {-1, 3, 32, 32}),
                           {.depth = 18, .classes = 5, .width = 16, .small_images = true});
  EXPECT_EQ(r.logits.shape(), (Shape{-1, 5}));
  EXPECT_EQ(net.main.var(r.checkpoints.back()).type.shape, (Shape{-1, 128, 4, 4}));
}

TEST(ResNet, UnknownDepthNamesTheLine) {
  Net net;
  const Var image = net.b.data("image", f32, {-1, 3, 224, 224});
  try {
    resnet(image, {.depth = 51});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(str("models_test.cc:", __LINE__ - 3)), std::string::npos)
        << e.what();
  }
}

TEST(Vgg16, Size) {
  Net net;
  const Network v = vgg16(net.b.data("image", f32, {-1, 3, 224, 224}));
  EXPECT_EQ(v.logits.shape(), (Shape{-1, 1000}));
  EXPECT_EQ(net.size(), (Size{32, 138'357'544}));
  net.expect_checkpoints(v.checkpoints, 5);
}

TEST(Vgg16, WithoutDropoutHasNoDropout) {
  Net net;
  vgg16(net.b.data("image", f32, {-1, 3, 224, 224}), {.dropout = 0});
  for (const ir::Op& op : net.main.ops()) EXPECT_NE(op.type(), "dropout");
}

BertPretraining build_bert(Net& net, BertOptions o) {
  const BertInputs in = {.words = net.b.data("words", i64, {-1, 16}),
                         .sentences = net.b.data("sentences", i64, {-1, 16})};
  const BertTargets targets = {.positions = net.b.data("positions", i64, {-1}),
                               .words = net.b.data("targets", i64, {-1, 1}),
                               .follows = net.b.data("follows", i64, {-1, 1})};
  return bert_pretraining(in, targets, o);
}

TEST(Bert, BaseHasTheSizeOfTheOriginal) {
  Net net;
  const BertPretraining p = build_bert(net, {});
  EXPECT_EQ(net.size().values, 110'106'428);
  EXPECT_EQ(p.loss.shape(), Shape{1});
  EXPECT_EQ(p.word_logits.shape(), (Shape{-1, 30522}));
  EXPECT_EQ(p.sentence_logits.shape(), (Shape{-1, 2}));
  net.expect_checkpoints(p.checkpoints, 12);
}

TEST(Bert, WordHeadIsTiedToTheEmbedding) {
  Net net;
  build_bert(net, {.vocabulary = 50, .hidden = 8, .layers = 2, .heads = 2, .intermediate = 16});
  int readers = 0;
  for (const ir::Op& op : net.main.ops()) readers += op.reads("word_embedding.w_0");
  EXPECT_EQ(readers, 2);
}

TEST(Bert, SequenceMustBeKnownAndNotTooLong) {
  Net net;
  const Var words = net.b.data("words", i64, {-1, 600});
  EXPECT_THROW(bert({.words = words, .sentences = words}), Error);
  const Var unknown = net.b.data("unknown", i64, {-1, -1});
  EXPECT_THROW(bert({.words = unknown, .sentences = unknown}), Error);
}

TEST(LeNet, Size) {
  Net net;
  const Network l = lenet(net.b.data("image", f32, {-1, 1, 28, 28}));
  EXPECT_EQ(l.logits.shape(), (Shape{-1, 10}));
  EXPECT_EQ(net.size(), (Size{8, 431'080}));
}

TEST(Mlp, Size) {
  Net net;
  const Network m = mlp(net.b.data("x", f32, {-1, 784}));
  EXPECT_EQ(m.logits.shape(), (Shape{-1, 10}));
  EXPECT_EQ(net.size(), (Size{6, 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10}));
}

TEST(WideDeep, Size) {
  Net net;
  const WideDeepOutputs w =
      wide_deep(net.b.data("dense", f32, {-1, 13}), net.b.data("ids", i64, {-1, 26}),
                net.b.data("label", f32, {-1, 1}));
  EXPECT_EQ(w.logits.shape(), (Shape{-1, 1}));
  EXPECT_EQ(w.loss.shape(), Shape{1});
  const int64_t deep = 273 * 400 + 400 + 2 * (400 * 400 + 400) + 401;
  EXPECT_EQ(net.size(), (Size{11, 10'000'010 + deep + 14}));
}

}  // namespace
}  // namespace fleetx::models
