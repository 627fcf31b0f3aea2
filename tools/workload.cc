#include "tools/workload.h"

#include <algorithm>
#include <functional>

#include "fleetx/base/names.h"
#include "fleetx/base/rng.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/transform.h"
#include "fleetx/models/bert.h"
#include "fleetx/models/mlp.h"
#include "fleetx/models/resnet.h"
#include "fleetx/models/vgg.h"
#include "fleetx/models/wide_deep.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"

namespace fleetx::tools {
namespace {

using ir::Var;

// Declares data variables and makes their contents, where `values` says so.
class Feeder {
 public:
  Feeder(ir::Builder& builder, Workload& workload, bool values)
      : b_(builder), workload_(workload), batch_(workload.batch), values_(values) {}

  int64_t batch() const { return batch_; }
  // Shapes are those of one example.
  Var normal(const std::string& name, const Shape& shape) {
    return make<float>(name, shape, [](Philox r, uint64_t i) { return r.normal(i); });
  }
  Var integers(const std::string& name, const Shape& shape, int64_t below) {
    return make<int64_t>(name, shape, [below](Philox r, uint64_t i) {
      return static_cast<int64_t>(r.bits(i) % static_cast<uint64_t>(below));
    });
  }
  Var coin(const std::string& name, const Shape& shape) {
    return make<float>(name, shape,
                       [](Philox r, uint64_t i) { return static_cast<float>(r.bits(i) % 2); });
  }
  // Given values, for the whole batch. They may depend on the samples that are computed together:
  // those of a micro-batch, where there is a pipeline.
  using Values = std::function<std::vector<int64_t>(int64_t micro_batch)>;
  Var values(const std::string& name, Shape shape, Values values) {
    workload_.feed_types.emplace_back(name, ir::TensorType{i64, shape});
    if (values_) {
      later_.push_back({workload_.feeds.size(), std::move(values)});
      workload_.feeds.emplace_back(name, Tensor(i64, shape));
    }
    const int64_t rows = shape[0] / batch_;
    shape[0] = -1;
    const Var data = b_.data(name, i64, std::move(shape));
    if (rows > 1) ir::Rewriter(workload_.main).edit_var(name).attrs.emplace("rows", rows);
    return data;
  }
  // Once it is known how the batch is cut.
  void finish(int64_t micro_batches) {
    for (const auto& [feed, values] : later_) {
      Tensor& t = workload_.feeds[feed].second;
      t = Tensor::of(t.shape(), values(batch_ / micro_batches));
    }
  }

 private:
  template <class T, class Fn>
  Var make(const std::string& name, const Shape& shape, const Fn& value) {
    std::vector<int64_t> dims = shape.dims();
    dims.insert(dims.begin(), batch_);
    workload_.feed_types.emplace_back(name, ir::TensorType{DTypeOf<T>::value, Shape(dims)});
    if (values_) {
      Tensor t(DTypeOf<T>::value, Shape(dims));
      const Philox random(1, stable_hash(name));
      uint64_t i = 0;
      for (T& x : t.data<T>()) x = value(random, i++);
      workload_.feeds.emplace_back(name, std::move(t));
    }
    dims[0] = -1;
    return b_.data(name, DTypeOf<T>::value, Shape(dims));
  }

  ir::Builder& b_;
  Workload& workload_;
  int64_t batch_;
  bool values_;
  std::vector<std::pair<size_t, Values>> later_;
};

struct Trained {
  Var loss;
  double items;
  std::vector<Var> outputs;  // what inference is to give
};

Var classification_loss(const Var& logits, const Var& label) {
  return nn::mean(nn::softmax_cross_entropy(logits, label));
}

Trained image_model(Feeder& f, const Var& logits) {
  return {classification_loss(logits, f.integers("label", {1}, logits.shape()[1])),
          static_cast<double>(f.batch()),
          {logits}};
}

Trained resnet50(Feeder& f) {
  return image_model(f, models::resnet(f.normal("image", {3, 224, 224}), {.depth = 50}).logits);
}

Trained vgg16(Feeder& f) {
  return image_model(f, models::vgg16(f.normal("image", {3, 224, 224}), {.dropout = 0}).logits);
}

Trained bert(Feeder& f, const models::BertOptions& o) {
  constexpr int64_t kLength = 128, kMasked = 20;
  const Var words = f.integers("words", {kLength}, o.vocabulary);
  const Var sentences = f.integers("sentences", {kLength}, 2);
  const int64_t n = f.batch() * kMasked;
  const auto positions = [n](int64_t micro_batch) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(i / kMasked % micro_batch * kLength + i % kMasked * (kLength / kMasked));
    return values;
  };
  const auto answers = [n, words = o.vocabulary](int64_t) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(static_cast<int64_t>(Philox(2, 0).bits(static_cast<uint64_t>(i))) % words);
    return values;
  };
  const models::BertPretraining p =
      models::bert_pretraining({.words = words, .sentences = sentences},
                               {.positions = f.values("positions", {n}, positions),
                                .words = f.values("targets", {n, 1}, answers),
                                .follows = f.integers("follows", {1}, 2)},
                               o);
  return {p.loss, static_cast<double>(f.batch() * kLength), {p.word_logits, p.sentence_logits}};
}

Trained bert_base(Feeder& f) { return bert(f, {}); }

Trained bert_short(Feeder& f) { return bert(f, {.layers = 2}); }

Trained bert_large(Feeder& f) {
  return bert(f, {.hidden = 1024, .layers = 24, .heads = 16, .intermediate = 4096});
}

Trained bert_07b(Feeder& f) {
  return bert(f, {.hidden = 1536, .layers = 24, .heads = 24, .intermediate = 6144});
}

Trained mlp(Feeder& f, int64_t inputs, int64_t hidden) {
  return image_model(f, models::mlp(f.normal("x", {inputs}), {.hidden = {hidden, hidden}}).logits);
}

Trained wide_deep(Feeder& f) {
  const models::WideDeepOptions o;
  const models::WideDeepOutputs w = models::wide_deep(
      f.normal("dense", {13}), f.integers("ids", {26}, o.rows), f.coin("label", {1}), o);
  return {w.loss, static_cast<double>(f.batch()), {w.logits}};
}

// One product of matrices: how fast arithmetic can be at best. Its items are GFLOP.
Trained sgemm(Feeder& f) {
  constexpr int64_t kSize = 2048;
  const Var product = nn::fc(f.normal("x", {kSize}), {.size = kSize, .bias = false});
  const Var mean = nn::mean(product);
  return {mean, 2e-9 * static_cast<double>(f.batch() * kSize * kSize), {mean}};
}

struct Entry {
  WorkloadInfo info;
  std::string unit;
  Trained (*build)(Feeder&);
  std::shared_ptr<optim::Optimizer> (*optimizer)();
};

template <class O>
std::shared_ptr<optim::Optimizer> share(O optimizer) {
  return std::make_shared<O>(std::move(optimizer));
}
std::shared_ptr<optim::Optimizer> sgd() { return share(optim::Sgd({.lr = 0.01})); }
std::shared_ptr<optim::Optimizer> momentum() { return share(optim::Momentum({.lr = 0.01})); }

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      {{"resnet50", "ResNet-50 v1.5, 224x224, 1,000 classes; momentum, L2", 16},
       "images",
       resnet50,
       [] { return share(optim::Momentum({.lr = 0.01, .l2 = 1e-4})); }},
      {{"vgg16", "VGG16, 224x224, 1,000 classes; momentum", 16},
       "images",
       vgg16,
       [] { return share(optim::Momentum({.lr = 0.001})); }},
      {{"bert-base", "BERT-base, sequences of 128, both heads; adam", 8},
       "tokens",
       bert_base,
       [] { return share(optim::Adam({.lr = 1e-4})); }},
      {{"bert-short", "two layers of BERT-base: each of its ops, for calibrations; adam", 8},
       "tokens",
       bert_short,
       [] { return share(optim::Adam({.lr = 1e-4})); }},
      {{"bert-large", "BERT-large, sequences of 128, both heads; adam", 4},
       "tokens",
       bert_large,
       [] { return share(optim::Adam({.lr = 1e-4})); }},
      {{"bert-0.7b", "BERT of 24 layers x 1,536: 0.73 G parameters; adam", 4},
       "tokens",
       bert_07b,
       [] { return share(optim::Adam({.lr = 2e-5})); }},  // it has no warm-up
      {{"mlp", "784-512-512-10, relu; momentum", 64},
       "examples",
       [](Feeder& f) { return mlp(f, 784, 512); },
       momentum},
      {{"tiny-mlp", "64-64-64-10, relu; momentum: overhead is all", 8},
       "examples",
       [](Feeder& f) { return mlp(f, 64, 64); },
       momentum},
      {{"wide-deep", "Wide&Deep, 26 ids of 1,000,001 x 10, 400-400-400; sgd", 512},
       "examples",
       wide_deep,
       sgd},
      {{"sgemm", "a product of matrices, BATCH x 2048 x 2048; sgd", 2048}, "GFLOP", sgemm, sgd},
  };
  return list;
}

}  // namespace

const std::vector<WorkloadInfo>& known_workloads() {
  static const std::vector<WorkloadInfo> list = [] {
    std::vector<WorkloadInfo> out;
    for (const Entry& e : entries()) out.push_back(e.info);
    return out;
  }();
  return list;
}

bool is_workload(const std::string& name) {
  return std::ranges::count(known_workloads(), name, &WorkloadInfo::name) > 0;
}

namespace {

const Entry& entry_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& e : entries()) {
    names.push_back(e.info.name);
    if (e.info.name == name) return e;
  }
  check_arg(false, "no model '", name, "'; known: ", join(names, ", "), did_you_mean(name, names));
  return entries().front();
}

}  // namespace

fleet::DistributedStrategy strategy_of(const WorkloadStrategies& with) {
  if (with.chosen) return *with.chosen;
  fleet::DistributedStrategy strategy;
  if (!with.file.empty()) strategy.load_text(with.file);
  strategy.recompute |= with.recompute;
  strategy.amp |= !with.amp.empty();
  if (with.amp == "f16") strategy.amp_configs.dtype = "float16";
  return strategy;
}

namespace {

int64_t micro_batches_of(const fleet::DistributedStrategy& s) {
  const fleet::PipelineConfigs& c = s.pipeline_configs;
  return s.pipeline ? std::max(c.accumulate_steps, c.micro_batch) : 1;
}

template <class Minimize>
Workload build(const Entry& entry, int64_t batch, bool values, const WorkloadStrategies& with,
               const Minimize& minimize) {
  Workload w;
  w.batch = batch > 0 ? batch : entry.info.batch;
  w.unit = entry.unit;
  const fleet::DistributedStrategy strategy = strategy_of(with);
  const int64_t parts = micro_batches_of(strategy);
  check_arg(w.batch % parts == 0, "--batch ", w.batch, " cannot be cut into the ", parts,
            " micro-batches of the strategy; choose a multiple");
  ir::Builder b(w.main, w.startup);
  Feeder feeder(b, w, values);
  const Trained trained = entry.build(feeder);
  w.loss = trained.loss.name();
  for (const Var& v : trained.outputs) w.outputs.push_back(v.name());
  w.items = trained.items;
  const fleet::DistributedOptimizer used =
      minimize(with.momentum ? momentum() : entry.optimizer(), strategy, trained.loss);
  w.strategy = used.strategy();
  w.mesh = used.mesh();
  feeder.finish(micro_batches_of(w.strategy));
  return w;
}

}  // namespace

Workload make_workload(const std::string& name, int64_t batch, const WorkloadStrategies& with) {
  const auto minimize = [](auto optimizer, const auto& strategy, const Var& loss) {
    if (!fleet::is_initialized()) fleet::init({.is_collective = true});
    auto used = fleet::distributed_optimizer(std::move(optimizer), strategy);
    used.minimize(loss);
    return used;
  };
  return build(entry_of(name), batch, true, with, minimize);
}

Workload describe_workload(const std::string& name, int64_t batch, const Mesh& mesh,
                           const WorkloadStrategies& with) {
  const auto minimize = [&](auto optimizer, const auto& strategy, const Var& loss) {
    fleet::DistributedOptimizer used(std::move(optimizer), strategy, mesh);
    used.minimize(loss);
    return used;
  };
  return build(entry_of(name), batch, false, with, minimize);
}

void make_inference(Workload& w) {
  w.main = ir::prune(ir::clone_for_test(w.main), w.outputs);
  const auto is_gone = [&](const auto& feed) { return w.main.find(feed.first) == nullptr; };
  std::erase_if(w.feeds, is_gone);
  std::erase_if(w.feed_types, is_gone);
}

}  // namespace fleetx::tools
