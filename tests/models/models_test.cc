// Parameters and shapes of the model zoo. The counts are those of the papers' reference versions.
#include <gtest/gtest.h>

#include <set>

#include "fleetx/ir/verifier.h"
#include "fleetx/models/bert.h"
#include "fleetx/models/lenet.h"
#include "fleetx/models/mlp.h"
#include "fleetx/models/resnet.h"
#include "fleetx/models/transformer.h"
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
  // Parameters and statistics, as a checkpoint has them.
  std::set<std::string> saved() const {
    std::set<std::string> names;
    for (const ir::VarInfo* v : main.vars())
      if (v->persistable && v->name != ir::kStepVar) names.insert(v->name);
    return names;
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
  const auto ids = [&](Shape shape) { return net.b.data(net.b.unique_name("ids"), i64, shape); };
  const BertInputs in = {.words = ids({-1, 16}), .sentences = ids({-1, 16})};
  const BertTargets targets = {
      .positions = ids({-1}), .words = ids({-1, 1}), .follows = ids({-1, 1})};
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

// Builds a model with a given name ("": none) into a program.
using Build = std::function<void(Net&, const std::string& name)>;

const std::map<std::string, Build> kNamed = {
    {"resnet",
     [](Net& net, const std::string& name) {
       resnet(net.b.data(net.b.unique_name("image"), f32, {-1, 3, 32, 32}),
              {.depth = 18, .width = 16, .small_images = true, .name = name});
     }},
    {"vgg16",
     [](Net& net, const std::string& name) {
       vgg16(net.b.data(net.b.unique_name("image"), f32, {-1, 3, 32, 32}), {.name = name});
     }},
    {"bert",
     [](Net& net, const std::string& name) {
       build_bert(net, {.vocabulary = 50,
                        .hidden = 8,
                        .layers = 2,
                        .heads = 2,
                        .intermediate = 16,
                        .name = name});
     }},
    {"wide_deep",
     [](Net& net, const std::string& name) {
       const auto data = [&](DType dtype, int64_t width) {
         return net.b.data(net.b.unique_name("in"), dtype, {-1, width});
       };
       wide_deep(data(f32, 13), data(i64, 26), data(f32, 1), {.rows = 100, .name = name});
     }},
};

TEST(Names, ASecondModelOfAProgramHasItsOwnParameters) {
  for (const auto& [kind, build] : kNamed) {
    SCOPED_TRACE(kind);
    Net one, three;
    build(one, "");
    for (int i = 0; i < 3; ++i) build(three, "");
    std::set<std::string> expected;
    for (const char* prefix : {"", "_1.", "_2."})
      for (const std::string& name : one.saved())
        expected.insert(*prefix == 0 ? name : kind + prefix + name);
    EXPECT_EQ(three.saved(), expected);
    EXPECT_EQ(three.size().values, 3 * one.size().values);
  }
}

TEST(Names, UsingANameTwiceShares) {
  for (const auto& [kind, build] : kNamed) {
    SCOPED_TRACE(kind);
    Net one, shared;
    build(one, "");
    build(shared, "twin");
    build(shared, "twin");
    std::set<std::string> expected;
    for (const std::string& name : one.saved()) expected.insert("twin." + name);
    EXPECT_EQ(shared.saved(), expected);
  }
}

// What is in checkpoints must not change.
TEST(Names, OfTheFirstModelArePlain) {
  const std::map<std::string, std::vector<std::string>> some = {
      {"resnet", {"conv1.w_0", "res2_0_branch2a_bn.w_1", "res5_1_branch2b.w_0", "fc.b_0"}},
      {"vgg16", {"conv1_1.w_0", "conv5_3.b_0", "fc6.w_0", "fc8.b_0"}},
      {"bert", {"word_embedding.w_0", "encoder_1_attention_query.w_0", "word_output.b_0"}},
      {"wide_deep", {"embedding.w_0", "deep_2.b_0", "deep_out.w_0", "wide.w_0"}}};
  for (const auto& [kind, names] : some) {
    Net net;
    kNamed.at(kind)(net, "");
    for (const std::string& name : names) EXPECT_TRUE(net.saved().contains(name)) << name;
  }
}

TransformerTraining build_transformer(Net& net, TransformerOptions o) {
  const auto data = [&](const std::string& name, DType dtype, Shape shape) {
    return net.b.data(name, dtype, shape);
  };
  return transformer({.words = data("src", i64, {-1, -1}),
                      .places = data("src_pos", i64, {-1, -1}),
                      .mask = data("mask", f32, {-1, 1, 1, -1})},
                     {.words = data("trg", i64, {-1, -1}),
                      .places = data("trg_pos", i64, {-1, -1}),
                      .next = data("next", i64, {-1, -1, 1}),
                      .weights = data("weights", f32, {-1, -1, 1})},
                     o);
}

TEST(Transformer, BaseAndBigHaveTheSizesOfTheOriginal) {
  Net base;
  const TransformerTraining t = build_transformer(base, {.dropout = 0.1});
  // 44.1 million in the layers and two norms and a shared embedding.
  EXPECT_EQ(base.size().values, 44'140'544 + 32000 * 512);
  EXPECT_EQ(t.loss.shape(), Shape{1});
  EXPECT_EQ(t.logits.shape(), (Shape{-1, -1, 32000}));
  base.expect_checkpoints(t.checkpoints, 12);
  Net big;
  build_transformer(big, {.hidden = 1024, .heads = 16, .intermediate = 4096});
  EXPECT_EQ(big.size().values, 176'361'472 + 32000 * 1024);
}

TEST(Transformer, WordsAreSharedOrNot) {
  Net net;
  TransformerOptions o{.source_vocabulary = 50, .target_vocabulary = 60};
  EXPECT_THROW(build_transformer(net, o), Error);
  Net other;
  o.shared_words = false;
  o.layers = 1;
  EXPECT_EQ(build_transformer(other, o).logits.shape(), (Shape{-1, -1, 60}));
  EXPECT_EQ(other.main.var("source_embedding.w_0").type.shape, (Shape{50, 512}));
  EXPECT_EQ(other.main.var("target_embedding.w_0").type.shape, (Shape{60, 512}));
}

}  // namespace
}  // namespace fleetx::models
