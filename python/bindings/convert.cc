#include "bindings/convert.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>

#include "bindings/gil.h"

namespace fleetx::python {
namespace {

struct Type {
  DType dtype;
  const char* name;
  int numbers[2];  // NumPy's; int64 has two
};
constexpr std::array<Type, 7> kTypes{{{DType::kF32, "float32", {11, 11}},
                                      {DType::kF64, "float64", {12, 12}},
                                      {DType::kI32, "int32", {5, 5}},
                                      {DType::kI64, "int64", {7, 9}},
                                      {DType::kF16, "float16", {23, 23}},
                                      {DType::kU8, "uint8", {2, 2}},
                                      {DType::kBool, "bool", {0, 0}}}};

template <class T>
T get_or(const py::dict& values, const char* key, T fallback) {
  return values.contains(key) && !values[key].is_none() ? values[key].cast<T>() : fallback;
}

bool is_float(const py::handle& value) {
  return PyFloat_Check(value.ptr()) || (PyNumber_Check(value.ptr()) && !PyIndex_Check(value.ptr()));
}

ir::Attr list_from(const py::sequence& list) {
  bool floats = false, strings = false;
  for (const py::handle item : list) {
    strings |= py::isinstance<py::str>(item);
    floats |= !py::isinstance<py::str>(item) && is_float(item);
  }
  if (strings) return list.cast<ir::Strings>();
  if (floats) return list.cast<ir::Floats>();
  return list.cast<ir::Ints>();
}

}  // namespace

std::string dtype_name(DType dtype) {
  for (const Type& type : kTypes)
    if (type.dtype == dtype) return type.name;
  return dtype == bf16 ? "bfloat16" : std::string(fleetx::name_of(dtype));
}

DType dtype_of(const std::string& name) {
  for (const Type& type : kTypes)
    if (name == type.name) return type.dtype;
  const auto type = dtype_from_name(name);
  check_arg(type.has_value(), "'", name,
            "' is not a data type that FleetX has; known: float32 float64 int32 int64 float16 "
            "bfloat16 uint8 bool");
  return *type;
}

// By NumPy's number of the type: the name is slow to ask for, and the size of an element is not
// where this pybind11 looks for it in NumPy 2.
bool is(const py::dtype& dtype, DType wanted) {
  const int number = dtype.num();
  return dtype.byteorder() != '>' &&
         std::any_of(kTypes.begin(), kTypes.end(), [&](const Type& type) {
           return type.dtype == wanted && (type.numbers[0] == number || type.numbers[1] == number);
         });
}

DType dtype_of(const py::dtype& dtype) {
  for (const Type& type : kTypes)
    if (is(dtype, type.dtype)) return type.dtype;
  return dtype_of(dtype.attr("name").cast<std::string>());
}

py::dtype numpy_dtype(DType dtype) {
  for (const Type& type : kTypes)
    if (type.dtype == dtype) return py::dtype(type.numbers[0]);
  return py::dtype(dtype_name(dtype));
}

ir::Attr attr_from(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()))
    return list_from(py::reinterpret_borrow<py::sequence>(value));
  if (is_float(value)) return value.cast<double>();
  check_arg(PyIndex_Check(value.ptr()), "an attribute cannot be a ",
            py::type::of(value).attr("__name__").cast<std::string>());
  return value.cast<int64_t>();
}

ir::Attrs attrs_from(const py::dict& values) {
  ir::Attrs out;
  for (const auto& [key, value] : values) out.emplace(key.cast<std::string>(), attr_from(value));
  return out;
}

py::object to_python(const ir::Attr& attr) {
  return std::visit([](const auto& value) { return py::cast(value); }, attr.value());
}

py::dict to_python(const ir::Attrs& attrs) {
  py::dict out;
  for (const auto& [key, value] : attrs) out[py::str(key)] = to_python(value);
  return out;
}

Tensor tensor_from(const py::array& array) {
  const DType dtype = dtype_of(array.dtype());
  py::array plain = array;
  if (!(array.flags() & py::array::c_style))
    plain = py::module_::import("numpy").attr("ascontiguousarray")(array).cast<py::array>();
  Shape shape;
  for (py::ssize_t i = 0; i < array.ndim(); ++i) shape.push_back(array.shape(i));
  // The reference is given back with the GIL held, whoever drops the last tensor.
  auto* owner = new py::object(plain);
  std::shared_ptr<void> keep(owner, [](void* object) {
    if (!Py_IsInitialized()) return;  // the object went with its interpreter
    const GilHeld gil;
    delete static_cast<py::object*>(object);
  });
  return Tensor::view(dtype, std::move(shape), const_cast<void*>(plain.data()), std::move(keep));
}

// NumPy has no bf16: its numbers are given as f32, which is exact.
Tensor with_numpy_type(const Tensor& tensor) {
  if (tensor.dtype() != bf16) return tensor;
  Tensor out(f32, tensor.shape());
  std::copy(tensor.data<BFloat16>().begin(), tensor.data<BFloat16>().end(),
            out.data<float>().begin());
  return out;
}

Tensor in_dtype(const Tensor& tensor, DType wanted) {
  if (wanted != bf16 || tensor.dtype() != f32) return tensor;
  Tensor out(bf16, tensor.shape());
  std::copy(tensor.data<float>().begin(), tensor.data<float>().end(), out.data<BFloat16>().begin());
  return out;
}

py::array array_from(const Tensor& tensor) {
  const Tensor plain = with_numpy_type(tensor.plain());
  auto* owner = new Tensor(plain);
  const py::capsule keep(owner, [](void* p) { delete static_cast<Tensor*>(p); });
  // Strides are given: this pybind11 would find the size of an element where NumPy 2 no longer has
  // it.
  std::vector<py::ssize_t> strides(plain.shape().rank());
  auto stride = static_cast<py::ssize_t>(size_of(plain.dtype()));
  for (size_t i = strides.size(); i-- > 0; stride *= plain.shape()[i]) strides[i] = stride;
  return py::array(numpy_dtype(plain.dtype()), plain.shape().dims(), strides, plain.raw(), keep);
}

nn::Init init_from(const py::handle& value) {
  if (value.is_none()) return nullptr;
  const auto o = value.cast<py::dict>();
  if (o.contains("op")) {
    ir::Initializer init{o["op"].cast<std::string>(), attrs_from(o["attrs"].cast<py::dict>())};
    return [init](const Shape&) { return init; };
  }
  const auto kind = o["kind"].cast<std::string>();
  const auto seed = get_or<int64_t>(o, "seed", 0);
  const auto number = [&](const char* key) { return o[key].cast<double>(); };
  if (kind == "constant") return nn::init::constant(number("value"));
  if (kind == "uniform") return nn::init::uniform(number("low"), number("high"), seed);
  if (kind == "normal") return nn::init::normal(number("mean"), number("std"), seed);
  if (kind == "truncated_normal")
    return nn::init::truncated_normal(number("mean"), number("std"), seed);
  if (kind == "xavier_uniform") return nn::init::xavier_uniform(seed);
  if (kind == "xavier_normal") return nn::init::xavier_normal(seed);
  if (kind == "msra_uniform") return nn::init::msra_uniform(seed);
  if (kind == "msra_normal") return nn::init::msra_normal(seed);
  if (kind == "assign") return nn::init::assign(o["values"].cast<std::vector<double>>());
  fail(Error::Kind::kInvalidArgument, "no initializer of kind '" + kind + "'");
}

nn::ParamAttr param_attr_from(const py::handle& value) {
  nn::ParamAttr attr;
  if (value.is_none()) return attr;
  const auto o = value.cast<py::dict>();
  attr.name = get_or<std::string>(o, "name", "");
  if (o.contains("init")) attr.init = init_from(o["init"]);
  attr.lr = get_or(o, "lr", 1.0);
  if (o.contains("l1")) attr.l1 = o["l1"].cast<double>();
  if (o.contains("l2")) attr.l2 = o["l2"].cast<double>();
  attr.trainable = get_or(o, "trainable", true);
  attr.need_clip = get_or(o, "need_clip", true);
  attr.is_distributed = get_or(o, "is_distributed", false);
  return attr;
}

}  // namespace fleetx::python
