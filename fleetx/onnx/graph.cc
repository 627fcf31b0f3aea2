#include "fleetx/onnx/graph.h"

#include "fleetx/onnx/model.pb.h"

namespace fleetx::onnx {
namespace {

// Operators that carry a number as an int where ours is a bool, and so on, are told by its type.
struct AttributeWriter {
  pb::Attribute& out;
  void operator()(bool v) const { (*this)(static_cast<int64_t>(v)); }
  void operator()(int64_t v) const {
    out.set_type(pb::Attribute::INT);
    out.set_i(v);
  }
  void operator()(double v) const {
    out.set_type(pb::Attribute::FLOAT);
    out.set_f(static_cast<float>(v));
  }
  void operator()(const std::string& v) const {
    out.set_type(pb::Attribute::STRING);
    out.set_s(v);
  }
  void operator()(const ir::Ints& v) const {
    out.set_type(pb::Attribute::INTS);
    out.mutable_ints()->Add(v.begin(), v.end());
  }
  void operator()(const ir::Floats& v) const {
    out.set_type(pb::Attribute::FLOATS);
    for (const double x : v) out.add_floats(static_cast<float>(x));
  }
  void operator()(const ir::Strings&) const {
    fail(Error::Kind::kInternal, "no operator that is written has a list of strings");
  }
};

template <class T>
Tensor one(double value) {
  const Tensor t(DTypeOf<T>::value, Shape{});
  *static_cast<T*>(t.raw()) = static_cast<T>(value);
  return t;
}

}  // namespace

int32_t element_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 1;
    case DType::kU8: return 2;
    case DType::kI32: return 6;
    case DType::kI64: return 7;
    case DType::kBool: return 9;
    case DType::kF16: return 10;
    case DType::kF64: return 11;
    case DType::kBF16: return 16;
  }
  fail(Error::Kind::kUnsupported, str("ONNX has no type for ", dtype));
}

std::string Graph::fresh(const std::string& op) { return str("onnx/", op, "_", next_++); }

std::string Graph::node(const std::string& op, const ir::Names& inputs, const ir::Attrs& attrs,
                        const std::string& out) {
  const std::string name = out.empty() ? fresh(op) : out;
  node_many(op, inputs, {name}, attrs);
  return name;
}

void Graph::node_many(const std::string& op, const ir::Names& inputs, const ir::Names& outputs,
                      const ir::Attrs& attrs) {
  pb::Node& node = *out_.add_node();
  node.set_op_type(op);
  node.set_name(fresh("node"));
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  for (const auto& [name, value] : attrs) {
    pb::Attribute& to = *node.add_attribute();
    to.set_name(name);
    std::visit(AttributeWriter{to}, value.value());
  }
}

void Graph::stored(const std::string& name, const Tensor& value) {
  const Tensor plain = value.plain();
  pb::Tensor& to = *out_.add_initializer();
  to.set_name(name);
  to.set_data_type(element_type(plain.dtype()));
  to.mutable_dims()->Add(plain.shape().begin(), plain.shape().end());
  to.set_raw_data(plain.raw(), static_cast<size_t>(plain.numel()) * size_of(plain.dtype()));
}

std::string Graph::tensor(const Tensor& value) {
  const std::string name = fresh("value");
  stored(name, value);
  return name;
}

std::string Graph::ints(const ir::Ints& values) {
  std::string key = "ints";
  for (const int64_t v : values) key += str(" ", v);
  std::string& name = numbers_[key];
  if (name.empty())
    name = tensor(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
  return name;
}

std::string Graph::number(double value, DType dtype) {
  std::string& name = numbers_[str(name_of(dtype), " ", value)];
  if (!name.empty()) return name;
  switch (dtype) {
    case DType::kF32: return name = tensor(one<float>(value));
    case DType::kF64: return name = tensor(one<double>(value));
    case DType::kI32: return name = tensor(one<int32_t>(value));
    case DType::kI64: return name = tensor(one<int64_t>(value));
    default: fail(Error::Kind::kUnsupported, str("as ONNX: a number of type ", dtype));
  }
}

void Writing::finish(const std::string& value, const std::string& to) const {
  const auto act = op.attrs.find("act");
  activate(graph, value, act == op.attrs.end() ? "" : act->second.as<std::string>(), to);
}

}  // namespace fleetx::onnx
