// The job that this process is part of.
#include "fleetx/fleet/fleet.h"

#include <pybind11/stl.h>

#include <algorithm>

#include "bindings/convert.h"
#include "bindings/gil.h"
#include "bindings/interrupt.h"
#include "bindings/optim.h"
#include "fleetx/strategies/sync_batch_norm.h"

namespace fleetx::python {
namespace {

using fleet::DistributedStrategy;
using fleet::RoleMaker;

// For others, without keeping Python from running.
struct Waiting {
  const Interruptible guard;
  const GilReleased release;
};

comm::ReduceOp op_of(const std::string& name) {
  for (const auto op : {comm::ReduceOp::kSum, comm::ReduceOp::kProd, comm::ReduceOp::kMin,
                        comm::ReduceOp::kMax, comm::ReduceOp::kAverage})
    if (comm::name_of(op) == name) return op;
  fail(Error::Kind::kInvalidArgument,
       "no reduction '" + name + "'; known: sum, prod, min, max, average");
}

// Collectives on arrays of this process. `array` must be row-major and is changed in place.
Tensor in_place(const py::array& array) {
  check_arg((array.flags() & py::array::c_style) && array.writeable(),
            "a collective works in place on an array that is row-major and may be written");
  return tensor_from(array);
}

void all_reduce(const py::array& array, const std::string& op) {
  const Tensor t = in_place(array);
  const Waiting waiting;
  fleet::workers().all_reduce(t.raw(), t.numel(), t.dtype(), op_of(op));
}

void broadcast(const py::array& array, int root) {
  const Tensor t = in_place(array);
  const Waiting waiting;
  fleet::workers().broadcast(t.raw(), t.numel(), t.dtype(), root);
}

// All ranks' arrays of one shape, in a new first dimension.
py::array all_gather(const py::array& array) {
  const Tensor t = tensor_from(array);
  Shape shape{fleet::workers().size()};
  for (const int64_t d : t.shape()) shape.push_back(d);
  Tensor out(t.dtype(), shape);
  {
    const Waiting waiting;
    fleet::workers().all_gather(t.raw(), out.raw(), t.numel(), t.dtype());
  }
  return array_from(out);
}

// What fleet.minimize gives back: pairs of parameter and gradient, the learning rate, and what was
// applied.
py::tuple minimize(PyBuilder& b, const py::dict& options, const DistributedStrategy* strategy,
                   const std::string& loss, const ir::Names& parameters,
                   const std::set<std::string>& no_grad, const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  auto optimizer =
      fleet::distributed_optimizer(std::shared_ptr<optim::Optimizer>(make_optimizer(b, options)),
                                   strategy == nullptr ? std::nullopt : std::optional(*strategy));
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const optim::ParamGrad& pair :
       optimizer.minimize(b.var(loss), {.parameters = parameters, .no_grad = no_grad}))
    pairs.emplace_back(pair.param.name(), pair.grad.name());
  ir::Names applied;  // each once, whatever the number of its phases
  for (const passes::Report& report : optimizer.applied()) {
    const std::string name = report.name.substr(0, report.name.find('.'));
    if (std::find(applied.begin(), applied.end(), name) == applied.end()) applied.push_back(name);
  }
  return py::make_tuple(pairs, optimizer.inner().learning_rate().name(), applied);
}

}  // namespace

void bind_fleet(py::module_& m) {
  py::module_ f = m.def_submodule("fleet");
  f.def("init",
        [](bool is_collective, const RoleMaker* roles, const DistributedStrategy* strategy) {
          fleet::InitOptions options;
          options.is_collective = is_collective;
          if (roles != nullptr) options.role_maker = *roles;
          if (strategy != nullptr) options.strategy = *strategy;
          const Waiting waiting;
          fleet::init(std::move(options));
        });
  f.def("is_initialized", &fleet::is_initialized);
  f.def("finalize", &fleet::finalize, py::call_guard<GilReleased>());
  f.def("role", [] { return fleet::role(); });
  f.def("barrier_worker", &fleet::barrier_worker, py::call_guard<Waiting>());
  f.def("all_reduce", &all_reduce);
  f.def("broadcast", &broadcast);
  f.def("all_gather", &all_gather);
  f.def("minimize", &minimize);
  f.def("sync_batch_norm", &strategies::take_statistics_over_all_workers);
}

}  // namespace fleetx::python
