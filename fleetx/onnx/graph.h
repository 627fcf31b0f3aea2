// The graph that is being written, as nodes_*.cc see it: they ask for nodes and constants by name
// and never touch the file format.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fleetx/ir/program.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::onnx {

namespace pb {
class Graph;
class Tensor;
}  // namespace pb

int32_t element_type(DType dtype);

class Graph {
 public:
  Graph(const ir::Program& program, pb::Graph& out) : program_(program), out_(out) {}

  const ir::TensorType& type(const std::string& var) const { return program_.var(var).type; }

  // One node with one new value, or with `out` as its value.
  std::string node(const std::string& op, const ir::Names& inputs, const ir::Attrs& attrs = {},
                   const std::string& out = "");
  void node_many(const std::string& op, const ir::Names& inputs, const ir::Names& outputs,
                 const ir::Attrs& attrs = {});

  // Values that are part of the file. Numbers have shape [], unless shape says otherwise.
  std::string ints(const ir::Ints& values);  // i64 [n]
  std::string number(double value, DType dtype = f32);
  std::string tensor(const Tensor& value);
  void stored(const std::string& name, const Tensor& value);

 private:
  std::string fresh(const std::string& op);

  const ir::Program& program_;
  pb::Graph& out_;
  std::map<std::string, std::string> numbers_;  // made already
  int64_t next_ = 0;
};

// How an op is written. `out` is the variable of its first output.
struct Writing {
  Graph& graph;
  const ir::Op& op;

  const std::string& in(std::string_view slot) const { return op.in(slot).front(); }
  const std::string& out(std::string_view slot = "out") const { return op.out(slot).front(); }
  const Shape& shape(std::string_view slot) const { return graph.type(in(slot)).shape; }
  const Shape& out_shape(std::string_view slot = "out") const {
    return graph.type(out(slot)).shape;
  }
  template <class T>
  T attr(std::string_view key) const {
    return op.attr<T>(key);
  }
  // kUnsupported, with the op and its place in front.
  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (!ok) fail(Error::Kind::kUnsupported, str(ir::describe(op), "as ONNX: ", parts...));
  }
  // Applies the attribute `act` of fused ops and gives the result the name `to`.
  void finish(const std::string& value, const std::string& to) const;
};

using Writer = void (*)(const Writing&);
using Writers = std::map<std::string, Writer, std::less<>>;
void add_math(Writers& to);    // elementwise, activations, reductions, comparisons
void add_shapes(Writers& to);  // views, cuts, joins, constants
void add_layers(Writers& to);  // convolutions, norms, products, attention, tables

// f(x) for the names of activations: "" is x itself.
std::string activate(Graph& graph, const std::string& x, const std::string& name,
                     const std::string& out = "");
std::string gelu(Graph& graph, const std::string& x, bool approximate, const std::string& out = "");

}  // namespace fleetx::onnx
