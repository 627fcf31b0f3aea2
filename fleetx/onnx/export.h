// Programs for inference as ONNX models, for onnxruntime and other engines. Every op becomes one or
// a few nodes of ONNX (nodes_*.cc); nodes are of operator sets 13 to 17 alike.
//
//   write_file("net.onnx", onnx::export_model(pruned, {"image"}, {logits}, values));
//
// The program is one that was cloned for testing and pruned to what computes `fetch`; what it keeps
// from step to step (parameters, statistics) comes from `values` and is stored in the file.
#pragma once

#include <functional>
#include <string>

#include "fleetx/ir/program.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::onnx {

using Values = std::function<Tensor(const std::string& name)>;

struct ExportOptions {
  int64_t opset = 13;
  std::string name = "fleetx";  // of the graph
};

// An op that ONNX has nothing for is kUnsupported and named with its place; so is a model of more
// than 2 GB, which the format's files cannot have. A feed or fetch that the program lacks is
// kInvalidArgument.
std::string export_model(const ir::Program& program, const ir::Names& feeds, const ir::Names& fetch,
                         const Values& values, const ExportOptions& options = {});

}  // namespace fleetx::onnx
