// Optimizers and learning-rate schedules.
#include "bindings/optim.h"

#include <pybind11/stl.h>

#include <memory>
#include <set>

#include "bindings/convert.h"
#include "fleetx/optim/schedule.h"

namespace fleetx::python {
namespace {

using optim::Optimizer;
using Pairs = std::vector<std::pair<std::string, std::string>>;

optim::Clip clip_from(const py::tuple& clip) {
  const auto kind = clip[0].cast<std::string>();
  if (kind == "value") return optim::clip_by_value(clip[1].cast<double>(), clip[2].cast<double>());
  if (kind == "norm") return optim::clip_by_norm(clip[1].cast<double>());
  return optim::clip_by_global_norm(clip[1].cast<double>());
}

py::dict class_of(const optim::PythonClass& python) {
  py::dict out;
  out["name"] = python.name;
  out["arguments"] = optim::arguments_of(python);
  out["required"] = python.required;
  return out;
}

py::dict definition(const optim::OptimizerDef& def) {
  py::dict options, accepted, out;
  for (const optim::OptionDef& option : def.options) {
    py::dict o;
    o["name"] = option.name;
    o["default"] = to_python(option.fallback);
    o["doc"] = option.doc;
    options[py::str(option.python)] = o;
  }
  for (const optim::AcceptedArgument& argument : def.accepted) {
    py::dict a;
    a["default"] = argument.fallback ? to_python(*argument.fallback) : py::none();
    a["any_value"] = argument.any_value;
    a["reason"] = argument.reason;
    accepted[py::str(argument.name)] = a;
  }
  out["kind"] = def.op;
  out["doc"] = def.doc;
  out["lr"] = def.lr;
  out["options"] = options;
  out["accepted"] = accepted;
  out["decay_filter"] = def.decay_filter.python;
  out["filter_keeps_names"] = def.decay_filter.kind == optim::DecayFilter::Kind::kKeepsName;
  out["python"] = class_of(def.python);
  out["fluid"] = class_of(def.fluid);
  return out;
}

// What paddle.optimizer and fluid.optimizer make their classes from.
py::list optimizers() {
  py::list all;
  for (const optim::OptimizerDef* def : optim::optimizer_defs()) all.append(definition(*def));
  return all;
}

void check_option(const std::string& kind, const std::string& option, const py::object& value) {
  optim::optimizer_def(kind).checked(option, attr_from(value));
}

// Pairs of parameter and gradient.
Pairs backward(PyBuilder& b, const std::string& loss, const ir::Names& parameters,
               const std::set<std::string>& no_grad, const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  Pairs out;
  for (const optim::ParamGrad& pair : autograd::append_backward(
           b.var(loss), {.parameters = parameters, .no_grad = no_grad, .again = true}))
    out.emplace_back(pair.param.name(), pair.grad.name());
  return out;
}

// Returns the name of the learning rate.
std::string apply_gradients(PyBuilder& b, const py::dict& options, const Pairs& gradients,
                            const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  std::vector<optim::ParamGrad> pairs;
  for (const auto& [param, grad] : gradients) pairs.push_back({b.var(param), b.var(grad)});
  const auto optimizer = make_optimizer(b, options);
  optimizer->apply_gradients(pairs);
  return optimizer->learning_rate().name();
}

std::string schedule(PyBuilder& b, const std::string& kind, const py::dict& o,
                     const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  ir::Builder& builder = b.get();
  const auto number = [&](const char* key) { return o[key].cast<double>(); };
  const auto whole = [&](const char* key) { return o[key].cast<int64_t>(); };
  const auto decay = [&] {
    return optim::DecayOptions{whole("steps"), number("rate"), o["staircase"].cast<bool>()};
  };
  if (kind == "exponential") return optim::exponential(builder, number("lr"), decay()).name();
  if (kind == "natural_exp") return optim::natural_exp(builder, number("lr"), decay()).name();
  if (kind == "inverse_time") return optim::inverse_time(builder, number("lr"), decay()).name();
  if (kind == "piecewise")
    return optim::piecewise(builder, o["boundaries"].cast<ir::Ints>(),
                            o["values"].cast<ir::Floats>())
        .name();
  if (kind == "polynomial") {
    return optim::polynomial(
               builder, number("lr"),
               {whole("steps"), number("end"), number("power"), o["cycle"].cast<bool>()})
        .name();
  }
  if (kind == "cosine")
    return optim::cosine(builder, number("lr"), whole("steps_per_epoch"), whole("epochs")).name();
  if (kind == "noam")
    return optim::noam(builder, whole("width"), whole("warm_up_steps"), number("lr")).name();
  check_arg(kind == "warm_up", "no schedule of kind '", kind, "'");
  if (py::isinstance<py::str>(o["after"]))
    return optim::warm_up(b.var(o["after"].cast<std::string>()), whole("steps"), number("start"),
                          number("end"))
        .name();
  return optim::warm_up(builder, number("after"), whole("steps"), number("start"), number("end"))
      .name();
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(PyBuilder& builder, const py::dict& options) {
  optim::MakeArgs args;
  py::dict rest;
  for (const auto& [key, value] : options) {
    const auto name = key.cast<std::string>();
    if (name == "lr" && py::isinstance<py::str>(value))
      args.schedule = builder.var(value.cast<std::string>());
    else if (name == "clip")
      args.clip = clip_from(value.cast<py::tuple>());
    else if (name != "kind")
      rest[key] = value;
  }
  return optim::make(options["kind"].cast<std::string>(), attrs_from(rest), args);
}

void bind_optim(py::module_& m) {
  m.def("optimizers", &optimizers);
  m.def("check_option", &check_option);
  m.def("backward", &backward);
  m.def("apply_gradients", &apply_gradients);
  m.def("schedule", &schedule);
}

}  // namespace fleetx::python
