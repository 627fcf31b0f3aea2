// Scopes, the executor and files of tensors.
#include <pybind11/stl.h>

#include "bindings/convert.h"
#include "bindings/executor.h"
#include "bindings/gil.h"
#include "bindings/interrupt.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/owned.h"
#include "fleetx/onnx/export.h"
#include "fleetx/runtime/profile_session.h"
#include "fleetx/tensor/safetensors.h"
#include "fleetx/train/placed_state.h"

namespace fleetx::python {
namespace {

using runtime::Scope;

py::array as_array(const py::module_& numpy, const py::handle& value, const std::string& name) {
  try {
    return numpy.attr("asarray")(value).cast<py::array>();
  } catch (const py::error_already_set& e) {
    if (!e.matches(PyExc_ValueError)) throw;
    fail(Error::Kind::kInvalidArgument,
         str("feed '", name, "' is not an array (lists of different lengths?): ",
             py::str(e.value()).cast<std::string>()));
  }
}

// What is fed must have the declared type; numbers of the same kind (float64 for float32) are
// converted.
py::array as_declared(const py::handle& value, const std::string& name, DType declared) {
  const bool given_as_list = !py::isinstance<py::array>(value);
  if (!given_as_list) {
    auto array = py::reinterpret_borrow<py::array>(value);
    if (is(array.dtype(), declared)) return array;
  }
  const auto numpy = py::module_::import("numpy");
  const auto array = as_array(numpy, value, name);
  const py::dtype wanted = numpy_dtype(declared);
  const bool fits =
      numpy.attr("can_cast")(array.dtype(), wanted, given_as_list ? "unsafe" : "same_kind")
          .cast<bool>();
  check_arg(fits && array.dtype().kind() != 'O', "feed '", name, "' is declared as ",
            dtype_name(declared), ", got an array of ",
            array.dtype().attr("name").cast<std::string>(),
            array.dtype().kind() == 'O' ? " (lists of different lengths?)" : "");
  return array.attr("astype")(wanted).cast<py::array>();
}

py::list run(Executor& executor, const ir::Program& program, Scope& scope, const py::dict& feed,
             const ir::Names& fetch) {
  runtime::Feeds feeds;
  feeds.reserve(feed.size());
  for (const auto& [key, value] : feed) {
    auto name = key.cast<std::string>();
    const ir::VarInfo& declared = program.var(name);
    Tensor tensor = tensor_from(as_declared(value, name, declared.type.dtype));
    if (tensor.shape().rank() == 0) tensor = tensor.reshaped({1});
    feeds.emplace_back(std::move(name), std::move(tensor));
  }
  std::vector<Tensor> results;
  {
    const Interruptible guard;
    const GilReleased release;
    const std::lock_guard lock(executor.turn);
    results = executor.runs.run(program, scope, feeds, fetch);
  }
  py::list out(results.size());
  for (size_t i = 0; i < results.size(); ++i) out[i] = array_from(results[i]);
  return out;
}

void bind_scope(py::module_& m) {
  py::class_<Scope, std::shared_ptr<Scope>>(m, "Scope")
      .def(py::init<>())
      .def("has", &Scope::has)
      .def("names", &Scope::names)
      .def("get", [](const Scope& s, const std::string& name) { return array_from(s.get(name)); })
      .def("set",
           [](Scope& s, const std::string& name, const py::array& value) {
             const Tensor* now = s.find(name);
             const Tensor next = tensor_from(value);
             s.set(name, now == nullptr ? next : in_dtype(next, now->dtype()));
           })
      // In the type that a program declares: NumPy has no bf16.
      .def("set_as",
           [](Scope& s, const ir::Program& program, const std::string& name,
              const py::array& value) {
             s.set(name, in_dtype(tensor_from(value), program.var(name).type.dtype));
           })
      .def("shape",
           [](const Scope& s, const std::string& name) {
             const Tensor* t = s.find(name);
             return t == nullptr ? py::object(py::none()) : py::object(py::cast(t->shape().dims()));
           })
      .def("dtype",
           [](const Scope& s, const std::string& name) {
             const Tensor* t = s.find(name);
             return t == nullptr ? std::string() : dtype_name(t->dtype());
           })
      .def("erase", &Scope::erase)
      .def_property_readonly("bytes", &Scope::bytes);
}

// The value of a variable as files hold it, and how it is stacked, if it is. All workers call it.
py::tuple whole_of(const ir::Program& program, const Scope& scope, const std::string& name) {
  const ir::VarInfo& var = program.var(name);
  Tensor whole;
  {
    const Interruptible guard;
    const GilReleased release;
    const bool elsewhere = ir::owner_of(var) && !scope.has(name);
    whole = train::to_whole(var, elsewhere ? Tensor() : scope.get(name), *comm::process_groups());
  }
  if (!whole.defined()) return py::make_tuple(py::none(), "");
  const bool stacked = var.placement.is_per_rank();
  return py::make_tuple(array_from(whole), stacked ? name_of(var.placement.resize) : "");
}

void set_from_whole(const ir::Program& program, Scope& scope, const std::string& name,
                    const py::array& whole, const std::string& saved, const std::string& source) {
  const ir::VarInfo& var = program.var(name);
  const Tensor own = train::from_whole(var, in_dtype(tensor_from(whole), var.type.dtype),
                                       saved.empty() ? std::nullopt : ir::resize_from_name(saved),
                                       *comm::process_groups(), source);
  if (own.defined()) scope.set(name, own);
}

void bind_files(py::module_& m) {
  m.def("whole_of", &whole_of);
  m.def("set_from_whole", &set_from_whole);
  m.def("save_tensors", [](const std::string& path, const std::map<std::string, py::array>& arrays,
                           const std::map<std::string, std::string>& metadata) {
    Safetensors content;
    for (const auto& [name, array] : arrays) content.tensors.emplace(name, tensor_from(array));
    content.metadata = metadata;
    save_safetensors(path, content);
  });
  m.def(
      "export_onnx",
      [](const ir::Program& program, const Scope& scope, const ir::Names& feeds,
         const ir::Names& fetch, int64_t opset) {
        return py::bytes(onnx::export_model(
            program, feeds, fetch, [&](const std::string& name) { return scope.get(name); },
            {.opset = opset}));
      },
      py::arg("program"), py::arg("scope"), py::kw_only(), py::arg("feeds"), py::arg("fetch"),
      py::arg("opset"));
  m.def("load_tensors", [](const std::string& path) {
    const Safetensors content = load_safetensors(path);
    py::dict arrays;
    for (const auto& [name, tensor] : content.tensors) arrays[py::str(name)] = array_from(tensor);
    return py::make_tuple(arrays, content.metadata);
  });
}

// {"forward conv2d": (calls, seconds, flops, bytes)} and the table of all.
py::tuple stop_profile(const std::string& trace_file) {
  const runtime::Profile profile = runtime::profile_session::stop(trace_file);
  py::dict rows;
  for (const auto& [name, row] : profile.rows())
    rows[py::str(name)] = py::make_tuple(row.calls, row.seconds, row.flops, row.bytes);
  return py::make_tuple(rows, profile.table());
}

void bind_profiles(py::module_& m) {
  m.def("start_profile", &runtime::profile_session::start);
  m.def("reset_profile", &runtime::profile_session::reset);
  m.def("profile_is_active", &runtime::profile_session::active);
  m.def("stop_profile", &stop_profile);
}

}  // namespace

void bind_runtime(py::module_& m) {
  bind_scope(m);
  bind_files(m);
  bind_profiles(m);
  py::class_<Executor>(m, "Executor")
      .def(py::init<>())
      .def("run", &run)
      .def("plans", [](const Executor& e) { return e.runs.plans(); })
      .def("plans_made", [](const Executor& e) { return e.runs.plans_made(); })
      .def("plan_table", [](Executor& executor, const ir::Program& program, Scope& scope,
                            const std::map<std::string, py::array>& feed, const ir::Names& fetch) {
        runtime::Feeds feeds;
        for (const auto& [name, array] : feed) feeds.emplace_back(name, tensor_from(array));
        const GilReleased release;
        const std::lock_guard lock(executor.turn);
        return executor.runs.plan(program, scope, feeds, fetch).table();
      });
  m.def("num_threads", &num_threads);
}

}  // namespace fleetx::python
