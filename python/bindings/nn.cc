// Layers that own parameters or need the state of the program; everything else is emitted op by op.
#include <pybind11/stl.h>

#include "bindings/builder.h"
#include "bindings/convert.h"
#include "fleetx/nn/nn.h"
#include "fleetx/nn/parallel.h"

namespace fleetx::python {
namespace {

using ir::Ints;

// The options of one call, by name; every one has the default of the C++ layer.
class Options {
 public:
  explicit Options(const py::dict& values) : values_(values) {}

  template <class T>
  void read(const char* key, T& out) const {
    if (values_.contains(key)) out = values_[key].cast<T>();
  }
  void read(const char* key, nn::ParamAttr& out) const {
    if (values_.contains(key)) out = param_attr_from(values_[key]);
  }
  void read(const char* key, nn::Size2& out) const {
    if (!values_.contains(key)) return;
    const auto size = values_[key].cast<Ints>();
    out = {size.at(0), size.at(1)};
  }
  void read(const char* key, nn::Padding& out) const {
    if (!values_.contains(key)) return;
    const py::object value = values_[key];
    if (py::isinstance<py::str>(value)) {
      out = nn::Padding(value.cast<std::string>());
      return;
    }
    const auto p = value.cast<Ints>();
    check_arg(p.size() == 2 || p.size() == 4, "padding takes 2 or 4 numbers, got ", p.size());
    out = p.size() == 2 ? nn::Padding(p[0], p[1]) : nn::Padding(p[0], p[1], p[2], p[3]);
  }

 private:
  const py::dict& values_;
};

// A layer function: options in, name of the result out.
template <class Fn>
auto layer(Fn fn) {
  return [fn](PyBuilder& b, const std::string& x, const py::dict& options, const std::string& name,
              const std::string& file, int line) -> std::string {
    const PyBuilder::At at(b, file, line, name);
    return fn(b.var(x), Options(options), name).name();
  };
}

ir::Var fc(const ir::Var& x, const Options& from, const std::string& name) {
  nn::FcOptions o;
  from.read("size", o.size);
  from.read("num_flatten_dims", o.num_flatten_dims);
  from.read("act", o.act);
  from.read("bias", o.bias);
  from.read("weight_attr", o.weight_attr);
  from.read("bias_attr", o.bias_attr);
  o.name = name;
  return nn::fc(x, o);
}

ir::Var parallel_linear(const ir::Var& x, const Options& from, const std::string& name) {
  nn::ParallelLinearOptions o;
  from.read("rows", o.rows);
  from.read("columns", o.columns);
  from.read("axis", o.axis);
  from.read("partitions", o.partitions);
  from.read("gather_out", o.gather_out);
  from.read("bias", o.bias);
  from.read("weight_attr", o.weight_attr);
  from.read("bias_attr", o.bias_attr);
  o.name = name;
  return nn::parallel_linear(x, o);
}

ir::Var parallel_embedding(const ir::Var& ids, const Options& from, const std::string& name) {
  nn::ParallelEmbeddingOptions o;
  from.read("rows", o.rows);
  from.read("dim", o.dim);
  from.read("partitions", o.partitions);
  from.read("weight_attr", o.weight_attr);
  o.name = name;
  return nn::parallel_embedding(ids, o);
}

ir::Var parallel_cross_entropy(const ir::Var& logits, const Options& from, const std::string&) {
  nn::ParallelCrossEntropyOptions o;
  std::string label;
  from.read("label", label);
  from.read("partitions", o.partitions);
  from.read("ignore_index", o.ignore_index);
  return nn::parallel_softmax_cross_entropy(logits, logits.builder().var(label), o);
}

template <class O>
O conv_options(const Options& from, const std::string& name) {
  O o;
  from.read("filters", o.filters);
  from.read("kernel", o.kernel);
  from.read("stride", o.stride);
  from.read("padding", o.padding);
  from.read("dilation", o.dilation);
  from.read("groups", o.groups);
  from.read("act", o.act);
  from.read("bias", o.bias);
  from.read("weight_attr", o.weight_attr);
  from.read("bias_attr", o.bias_attr);
  o.name = name;
  return o;
}

ir::Var conv2d(const ir::Var& x, const Options& from, const std::string& name) {
  return nn::conv2d(x, conv_options<nn::Conv2dOptions>(from, name));
}

ir::Var conv2d_transpose(const ir::Var& x, const Options& from, const std::string& name) {
  auto o = conv_options<nn::Conv2dTransposeOptions>(from, name);
  from.read("output_padding", o.output_padding);
  return nn::conv2d_transpose(x, o);
}

ir::Var batch_norm(const ir::Var& x, const Options& from, const std::string& name) {
  nn::BatchNormOptions o;
  from.read("act", o.act);
  from.read("momentum", o.momentum);
  from.read("epsilon", o.epsilon);
  from.read("is_test", o.is_test);
  from.read("use_global_stats", o.use_global_stats);
  from.read("scale_attr", o.scale_attr);
  from.read("bias_attr", o.bias_attr);
  from.read("mean_name", o.mean_name);
  from.read("variance_name", o.variance_name);
  o.name = name;
  return nn::batch_norm(x, o);
}

ir::Var layer_norm(const ir::Var& x, const Options& from, const std::string& name) {
  nn::LayerNormOptions o;
  from.read("begin_norm_axis", o.begin_norm_axis);
  from.read("epsilon", o.epsilon);
  from.read("scale", o.scale);
  from.read("bias", o.bias);
  from.read("act", o.act);
  from.read("scale_attr", o.scale_attr);
  from.read("bias_attr", o.bias_attr);
  o.name = name;
  return nn::layer_norm(x, o);
}

ir::Var embedding(const ir::Var& ids, const Options& from, const std::string& name) {
  nn::EmbeddingOptions o;
  from.read("rows", o.rows);
  from.read("dim", o.dim);
  from.read("padding_idx", o.padding_idx);
  from.read("sparse", o.sparse);
  from.read("weight_attr", o.weight_attr);
  o.name = name;
  return nn::embedding(ids, o);
}

ir::Var dropout(const ir::Var& x, const Options& from, const std::string&) {
  nn::DropoutOptions o;
  from.read("p", o.p);
  from.read("is_test", o.is_test);
  from.read("mode", o.mode);
  from.read("seed", o.seed);
  return nn::dropout(x, o);
}

ir::Var pool2d(const ir::Var& x, const Options& from, const std::string&) {
  nn::Pool2dOptions o;
  from.read("kernel", o.kernel);
  from.read("stride", o.stride);
  from.read("padding", o.padding);
  from.read("type", o.type);
  from.read("exclusive", o.exclusive);
  from.read("ceil_mode", o.ceil_mode);
  from.read("global", o.global);
  return nn::pool2d(x, o);
}

ir::Var adaptive_pool2d(const ir::Var& x, const Options& from, const std::string&) {
  nn::AdaptivePool2dOptions o;
  from.read("size", o.size);
  from.read("type", o.type);
  return nn::adaptive_pool2d(x, o);
}

Ints resolve_padding(PyBuilder& b, const std::string& x, const py::dict& options,
                     const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  const Options from(options);
  nn::Size2 kernel = 1, stride = 1, dilation = 1;
  nn::Padding padding = 0;
  from.read("kernel", kernel);
  from.read("stride", stride);
  from.read("dilation", dilation);
  from.read("padding", padding);
  return padding.resolve(b.var(x), kernel, stride, dilation, nn::Where::current());
}

// Random values that differ from step to step: the op reads the program's step counter.
std::string random(PyBuilder& b, const std::string& kind, std::vector<int64_t> shape, double first,
                   double second, int64_t seed, const std::string& name, const std::string& file,
                   int line) {
  const PyBuilder::At at(b, file, line, name);
  const Shape dims(std::move(shape));
  if (kind == "uniform") return nn::uniform(b.get(), dims, first, second, seed).name();
  if (kind == "gaussian") return nn::gaussian(b.get(), dims, first, second, seed).name();
  check_arg(kind == "randint", "no random values of kind '", kind, "'");
  return nn::randint(b.get(), dims, static_cast<int64_t>(first), static_cast<int64_t>(second), seed)
      .name();
}

// Numbers in [0, 1) in the shape of a variable, others in every step.
std::string uniform_like(PyBuilder& b, const std::string& like, int64_t seed,
                         const std::string& name, const std::string& file, int line) {
  const PyBuilder::At at(b, file, line, name);
  const ir::Var out = b.get().op("uniform_like", {{"like", b.var(like)}, {"step", b.get().step()}},
                                 {{"seed", seed}});
  return out.name();
}

}  // namespace

void bind_nn(py::module_& m) {
  m.def("fc", layer(fc));
  m.def("parallel_linear", layer(parallel_linear));
  m.def("parallel_embedding", layer(parallel_embedding));
  m.def("parallel_cross_entropy", layer(parallel_cross_entropy));
  m.def("conv2d", layer(conv2d));
  m.def("conv2d_transpose", layer(conv2d_transpose));
  m.def("batch_norm", layer(batch_norm));
  m.def("layer_norm", layer(layer_norm));
  m.def("embedding", layer(embedding));
  m.def("dropout", layer(dropout));
  m.def("pool2d", layer(pool2d));
  m.def("adaptive_pool2d", layer(adaptive_pool2d));
  m.def("resolve_padding", &resolve_padding);
  m.def("random", &random);
  m.def("uniform_like", &uniform_like);
}

}  // namespace fleetx::python
