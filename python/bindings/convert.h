// Values on their way between Python and C++: attributes, dtypes, tensors.
#pragma once

#include <pybind11/numpy.h>

#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "fleetx/ir/attr.h"
#include "fleetx/nn/layer.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::python {

// "float32", "int64", ...: the names that NumPy and users know.
std::string dtype_name(DType dtype);
DType dtype_of(const std::string& name);  // an unknown one: kInvalidArgument
DType dtype_of(const py::dtype& dtype);
bool is(const py::dtype& dtype, DType wanted);
py::dtype numpy_dtype(DType dtype);

ir::Attr attr_from(const py::handle& value);
ir::Attrs attrs_from(const py::dict& values);
py::object to_python(const ir::Attr& attr);
py::dict to_python(const ir::Attrs& attrs);

// A view where the array is row-major (the array stays alive with it), else a copy.
Tensor tensor_from(const py::array& array);
// NumPy has no bf16, so that numbers for it come as f32: they are rounded. Others stay.
Tensor in_dtype(const Tensor& tensor, DType wanted);
// A view: the array keeps the tensor's memory; of bf16 a copy in f32.
py::array array_from(const Tensor& tensor);

// {"op": ..., "attrs": {...}} or {"kind": "xavier_uniform", ...}; None gives an empty one.
nn::Init init_from(const py::handle& value);
// {"name", "init", "lr", "l1", "l2", "trainable", "need_clip"}; None is the default.
nn::ParamAttr param_attr_from(const py::handle& value);

}  // namespace fleetx::python
