// Scopes, the executor and files of tensors.
#include <pybind11/stl.h>
#include <signal.h>

#include <atomic>

#include "bindings/convert.h"
#include "fleetx/base/threads.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/runtime/interrupt.h"
#include "fleetx/tensor/safetensors.h"

namespace fleetx::python {
namespace {

using runtime::Executor;
using runtime::Scope;

// Ctrl-C stops a running plan between two ops. Python's own handler only makes a note that the
// interpreter looks at later; ours is put in front of it while a plan runs, so that the plan knows
// when to ask the interpreter.
std::atomic<bool> interrupted = false;
struct sigaction pythons_own;

void note_interrupt(int signal, siginfo_t* info, void* context) {
  interrupted = true;
  if (pythons_own.sa_flags & SA_SIGINFO)
    pythons_own.sa_sigaction(signal, info, context);
  else if (pythons_own.sa_handler != SIG_DFL && pythons_own.sa_handler != SIG_IGN)
    pythons_own.sa_handler(signal);
}

void ask_python() {
  if (!interrupted.exchange(false)) return;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Signals are delivered to the main thread's interpreter only; other threads need no guard.
class Interruptible {
 public:
  Interruptible() {
    struct sigaction ours {};
    if (sigaction(SIGINT, nullptr, &pythons_own) != 0) return;
    if (!(pythons_own.sa_flags & SA_SIGINFO) &&
        (pythons_own.sa_handler == SIG_DFL || pythons_own.sa_handler == SIG_IGN))
      return;
    ours.sa_sigaction = note_interrupt;
    ours.sa_flags = SA_SIGINFO | (pythons_own.sa_flags & SA_RESTART);
    installed_ = sigaction(SIGINT, &ours, nullptr) == 0;
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() {
    if (installed_) sigaction(SIGINT, &pythons_own, nullptr);
  }

 private:
  bool installed_ = false;
};

bool on_main_thread() {
  static const auto main =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  return main == PyThread_get_thread_ident();
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
  const auto array = numpy.attr("asarray")(value).cast<py::array>();
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

py::list run(Executor& exe, const ir::Program& program, Scope& scope, const py::dict& feed,
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
    const std::optional<Interruptible> guard =
        on_main_thread() ? std::optional<Interruptible>(std::in_place) : std::nullopt;
    const py::gil_scoped_release release;
    results = exe.run(program, scope, feeds, fetch);
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
      .def("set", [](Scope& s, const std::string& name,
                     const py::array& value) { s.set(name, tensor_from(value)); })
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

void bind_files(py::module_& m) {
  m.def("save_tensors", [](const std::string& path, const std::map<std::string, py::array>& arrays,
                           const std::map<std::string, std::string>& metadata) {
    Safetensors content;
    for (const auto& [name, array] : arrays) content.tensors.emplace(name, tensor_from(array));
    content.metadata = metadata;
    save_safetensors(path, content);
  });
  m.def("load_tensors", [](const std::string& path) {
    const Safetensors content = load_safetensors(path);
    py::dict arrays;
    for (const auto& [name, tensor] : content.tensors) arrays[py::str(name)] = array_from(tensor);
    return py::make_tuple(arrays, content.metadata);
  });
}

}  // namespace

void bind_runtime(py::module_& m) {
  bind_scope(m);
  bind_files(m);
  py::class_<Executor>(m, "Executor")
      .def(py::init<>())
      .def("run", &run)
      .def("plans", &Executor::plans)
      .def("plan_table", [](Executor& exe, const ir::Program& program, Scope& scope,
                            const std::map<std::string, py::array>& feed, const ir::Names& fetch) {
        runtime::Feeds feeds;
        for (const auto& [name, array] : feed) feeds.emplace_back(name, tensor_from(array));
        return exe.plan(program, scope, feeds, fetch).table();
      });
  m.def("num_threads", &num_threads);
  runtime::set_interrupt(&ask_python);
}

}  // namespace fleetx::python
