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

// The values of one optimizer as Python gives them: {"kind", "lr", "l1", "l2", "clip", ...}.
class Values {
 public:
  Values(PyBuilder& b, const py::dict& values) : b_(b), values_(values) {}

  template <class T>
  T get(const char* key, T fallback) const {
    return values_.contains(key) ? values_[key].cast<T>() : fallback;
  }
  std::string kind() const { return values_["kind"].cast<std::string>(); }
  optim::LearningRate lr() const {
    const py::object lr = values_["lr"];
    if (py::isinstance<py::str>(lr)) return b_.var(lr.cast<std::string>());
    return lr.cast<double>();
  }
  optim::Clip clip() const {
    if (!values_.contains("clip")) return {};
    const auto clip = values_["clip"].cast<py::tuple>();
    const auto kind = clip[0].cast<std::string>();
    if (kind == "value")
      return optim::clip_by_value(clip[1].cast<double>(), clip[2].cast<double>());
    if (kind == "norm") return optim::clip_by_norm(clip[1].cast<double>());
    return optim::clip_by_global_norm(clip[1].cast<double>());
  }
  template <class O>
  O common() const {
    O o;
    o.lr = lr();
    o.clip = clip();
    if constexpr (requires { o.l1; }) {
      o.l1 = get("l1", 0.0);
      o.l2 = get("l2", 0.0);
    }
    return o;
  }

 private:
  PyBuilder& b_;
  const py::dict& values_;
};

template <class O>
O adam_options(const Values& v) {
  auto o = v.common<O>();
  o.beta1 = v.get("beta1", o.beta1);
  o.beta2 = v.get("beta2", o.beta2);
  o.epsilon = v.get("epsilon", o.epsilon);
  return o;
}

std::unique_ptr<Optimizer> make_adamw(const Values& v) {
  auto o = adam_options<optim::AdamWOptions>(v);
  o.decay = v.get("decay", o.decay);
  const auto without = v.get("without_decay", std::set<std::string>{});
  o.with_decay = [without](const std::string& param) { return !without.contains(param); };
  return std::make_unique<optim::AdamW>(o);
}

std::unique_ptr<Optimizer> make_momentum(const Values& v) {
  auto o = v.common<optim::MomentumOptions>();
  o.mu = v.get("mu", o.mu);
  o.nesterov = v.get("nesterov", o.nesterov);
  return std::make_unique<optim::Momentum>(o);
}

std::unique_ptr<Optimizer> make_adagrad(const Values& v) {
  auto o = v.common<optim::AdagradOptions>();
  o.epsilon = v.get("epsilon", o.epsilon);
  o.initial = v.get("initial", o.initial);
  return std::make_unique<optim::Adagrad>(o);
}

std::unique_ptr<Optimizer> make_rmsprop(const Values& v) {
  auto o = v.common<optim::RmsPropOptions>();
  o.rho = v.get("rho", o.rho);
  o.epsilon = v.get("epsilon", o.epsilon);
  o.momentum = v.get("momentum", o.momentum);
  o.centered = v.get("centered", o.centered);
  return std::make_unique<optim::RmsProp>(o);
}

std::unique_ptr<Optimizer> make_adadelta(const Values& v) {
  auto o = v.common<optim::AdadeltaOptions>();
  o.rho = v.get("rho", o.rho);
  o.epsilon = v.get("epsilon", o.epsilon);
  return std::make_unique<optim::Adadelta>(o);
}

std::unique_ptr<Optimizer> make_ftrl(const Values& v) {
  auto o = v.common<optim::FtrlOptions>();
  o.shrink_l1 = v.get("shrink_l1", o.shrink_l1);
  o.shrink_l2 = v.get("shrink_l2", o.shrink_l2);
  o.lr_power = v.get("lr_power", o.lr_power);
  return std::make_unique<optim::Ftrl>(o);
}

std::unique_ptr<Optimizer> make_lars(const Values& v) {
  auto o = v.common<optim::LarsMomentumOptions>();
  o.mu = v.get("mu", o.mu);
  o.lars_coeff = v.get("lars_coeff", o.lars_coeff);
  o.lars_weight_decay = v.get("lars_weight_decay", o.lars_weight_decay);
  o.epsilon = v.get("epsilon", o.epsilon);
  o.exclude = v.get("exclude", o.exclude);
  return std::make_unique<optim::LarsMomentum>(o);
}

std::unique_ptr<Optimizer> make_lamb(const Values& v) {
  auto o = adam_options<optim::LambOptions>(v);
  o.weight_decay = v.get("weight_decay", o.weight_decay);
  o.exclude = v.get("exclude", o.exclude);
  return std::make_unique<optim::Lamb>(o);
}

std::unique_ptr<Optimizer> make(const Values& v) {
  const std::string kind = v.kind();
  if (kind == "sgd") return std::make_unique<optim::Sgd>(v.common<optim::SgdOptions>());
  if (kind == "momentum") return make_momentum(v);
  if (kind == "adam") return std::make_unique<optim::Adam>(adam_options<optim::AdamOptions>(v));
  if (kind == "adamax") return std::make_unique<optim::Adamax>(adam_options<optim::AdamOptions>(v));
  if (kind == "adamw") return make_adamw(v);
  if (kind == "adagrad") return make_adagrad(v);
  if (kind == "rmsprop") return make_rmsprop(v);
  if (kind == "adadelta") return make_adadelta(v);
  if (kind == "ftrl") return make_ftrl(v);
  if (kind == "lars_momentum") return make_lars(v);
  if (kind == "lamb") return make_lamb(v);
  fail(Error::Kind::kInvalidArgument, "no optimizer of kind '" + kind + "'");
}

// Pairs of parameter and gradient.
Pairs backward(PyBuilder& b, const std::string& loss, const ir::Names& parameters,
               const std::set<std::string>& no_grad, const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  Pairs out;
  for (const optim::ParamGrad& pair :
       autograd::append_backward(b.var(loss), {.parameters = parameters, .no_grad = no_grad}))
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
  return make(Values(builder, options));
}

void bind_optim(py::module_& m) {
  m.def("backward", &backward);
  m.def("apply_gradients", &apply_gradients);
  m.def("schedule", &schedule);
}

}  // namespace fleetx::python
