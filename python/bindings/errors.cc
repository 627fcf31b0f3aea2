// fleetx::Error as Python exceptions. All are FleetXError; each is also the built-in that a Python
// programmer would catch for such a mistake.
#include "bindings/bindings.h"
#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/fleet/describe_job.h"

namespace fleetx::python {
namespace {

// Never released: a translator may run while the interpreter ends.
struct Classes {
  py::object base, invalid, unsupported, comm, timeout, corrupt, internal;
};
Classes* classes = nullptr;

const py::object& class_of(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::kInvalidArgument: return classes->invalid;
    case Error::Kind::kUnsupported: return classes->unsupported;
    case Error::Kind::kComm: return classes->comm;
    case Error::Kind::kTimeout: return classes->timeout;
    case Error::Kind::kCorrupt: return classes->corrupt;
    case Error::Kind::kInternal: break;
  }
  return classes->internal;
}

}  // namespace

void bind_errors(py::module_& m) {
  const auto define = [&](const char* name, const py::tuple& bases) -> py::object {
    py::dict content;
    content["__module__"] = "paddle";
    py::object made = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(&PyType_Type))(
        name, bases, content);
    m.attr(name) = made;
    return made;
  };
  const auto builtin = [](PyObject* type) { return py::reinterpret_borrow<py::object>(type); };
  classes = new Classes;
  classes->base = define("FleetXError", py::make_tuple(builtin(PyExc_RuntimeError)));
  const auto derived = [&](const char* name, PyObject* also) {
    return define(name, py::make_tuple(classes->base, builtin(also)));
  };
  classes->invalid = derived("InvalidArgumentError", PyExc_ValueError);
  classes->unsupported = derived("UnsupportedError", PyExc_NotImplementedError);
  classes->comm = define("CommunicationError", py::make_tuple(classes->base));
  classes->timeout = define("CommunicationTimeout", py::make_tuple(classes->comm));
  classes->corrupt = derived("CorruptFileError", PyExc_ValueError);
  classes->internal = define("InternalError", py::make_tuple(classes->base));

  py::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const Error& e) {
      PyErr_SetString(class_of(e.kind()).ptr(), e.what());
    } catch (const fleet::JobDescribed& end) {  // as sys.exit() would
      PyErr_SetObject(PyExc_SystemExit, py::int_(end.exit_code()).ptr());
    }
  });

  m.def("env", [](const std::string& name) { return env::get(name).value_or(""); });
  m.def("env_flag", [](const std::string& name) { return env::flag(name); });
}

}  // namespace fleetx::python
