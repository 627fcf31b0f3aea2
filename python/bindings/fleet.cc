// The job that this process is part of.
#include "fleetx/fleet/fleet.h"

#include <pybind11/stl.h>

#include <algorithm>

#include "bindings/convert.h"
#include "bindings/gil.h"
#include "bindings/interrupt.h"
#include "bindings/optim.h"
#include "fleetx/fleet/parameter_state.h"
#include "fleetx/strategies/amp_casts.h"
#include "fleetx/strategies/parameter_server.h"
#include "fleetx/strategies/sync_batch_norm.h"

namespace fleetx::python {
namespace {

using fleet::DistributedStrategy;
using fleet::RoleMaker;

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

void all_reduce(const py::array& array, const std::string& op, const std::string& comm_world) {
  const Tensor t = in_place(array);
  const Waiting waiting;
  fleet::group(comm_world).all_reduce(t.raw(), t.numel(), t.dtype(), op_of(op));
}

void broadcast(const py::array& array, int root) {
  const Tensor t = in_place(array);
  const Waiting waiting;
  fleet::workers().broadcast(t.raw(), t.numel(), t.dtype(), root);
}

// All ranks' arrays of one shape, in a new first dimension.
py::array all_gather(const py::array& array, const std::string& comm_world) {
  const Tensor t = tensor_from(array);
  comm::Communicator& group = fleet::group(comm_world);
  Shape shape{group.size()};
  for (const int64_t d : t.shape()) shape.push_back(d);
  Tensor out(t.dtype(), shape);
  {
    const Waiting waiting;
    group.all_gather(t.raw(), out.raw(), t.numel(), t.dtype());
  }
  return array_from(out);
}

// {"mode": "geo", "k_steps": 100, ...}, with the names of ServerConfig.
fleet::ServerConfig server_config(const py::dict& from) {
  fleet::ServerConfig config;
  for (const auto& [key, value] : from) {
    const auto name = key.cast<std::string>();
    const auto read = [&](const char* field, auto& to) {
      if (name != field) return false;
      to = value.cast<std::remove_reference_t<decltype(to)>>();
      return true;
    };
    const bool known =
        read("mode", config.mode) || read("k_steps", config.k_steps) ||
        read("staleness", config.staleness) || read("slice_var_up", config.slice_var_up) ||
        read("split_method", config.split_method) ||
        read("min_block_size", config.min_block_size) || read("dc_asgd", config.dc_asgd);
    FLEETX_CHECK(known, "ServerConfig has no '", name, "'");
  }
  return config;
}

// What fleet.minimize gives back: pairs of parameter and gradient, the learning rate, what was
// applied, and the strategy as text (that of auto: its choice). `alone`: a program of one worker,
// whatever job this process is part of. `servers`: None, or how the job's servers are used.
py::tuple minimize(PyBuilder& b, const py::dict& options, const DistributedStrategy* given,
                   bool alone, const std::string& loss, const ir::Names& parameters,
                   const std::set<std::string>& no_grad, const py::object& servers,
                   const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  const auto inner = std::shared_ptr<optim::Optimizer>(make_optimizer(b, options));
  const auto strategy = given == nullptr ? std::nullopt : std::optional(*given);
  const auto for_this_job = [&] {
    if (servers.is_none()) return fleet::distributed_optimizer(inner, strategy);
    return fleet::distributed_optimizer(inner, strategy, server_config(servers.cast<py::dict>()));
  };
  auto optimizer =
      alone ? fleet::DistributedOptimizer(inner, *strategy, mesh_of({}, 1, 0)) : for_this_job();
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const optim::ParamGrad& pair :
       optimizer.minimize(b.var(loss), {.parameters = parameters, .no_grad = no_grad}))
    pairs.emplace_back(pair.param.name(), pair.grad.name());
  ir::Names applied;  // each once, whatever the number of its phases
  for (const passes::Report& report : optimizer.applied()) {
    const std::string name = report.name.substr(0, report.name.find('.'));
    if (std::find(applied.begin(), applied.end(), name) == applied.end()) applied.push_back(name);
  }
  return py::make_tuple(pairs, optimizer.inner().learning_rate().name(), applied,
                        optimizer.strategy().to_text());
}

// For programs that only compute: what paddle.static.amp.cast_model_to_fp16 asks for.
void cast_to_half(ir::Program& program, const std::string& dtype, const ir::Strings& white,
                  const ir::Strings& black, const ir::Strings& black_vars,
                  const ir::Strings& guarded) {
  check_arg(program.training().empty(),
            "cast_model_to_fp16: the program has a backward part; decorate the optimizer instead");
  const strategies::AmpLists lists(white, black);
  strategies::insert_casts(program, {.half = dtype_of(dtype),
                                     .lists = lists,
                                     .black_vars = {black_vars.begin(), black_vars.end()},
                                     .pure = true,
                                     .guarded = {guarded.begin(), guarded.end()}});
}

void read_as_f32(ir::Program& program, const ir::Names& parameters, const std::string& dtype) {
  strategies::read_as_f32(program, parameters, dtype_of(dtype));
}

}  // namespace

void bind_fleet(py::module_& m) {
  m.def("cast_to_half", &cast_to_half);
  m.def("read_as_f32", &read_as_f32);
  m.def("strategy_names", &strategies::strategy_names);
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
  f.def("all_reduce", &all_reduce, py::arg("array"), py::arg("op"),
        py::arg("comm_world") = "worker");
  f.def("broadcast", &broadcast);
  f.def("all_gather", &all_gather, py::arg("array"), py::arg("comm_world") = "worker");
  f.def(
      "barrier", [](const std::string& comm_world) { fleet::group(comm_world).barrier(); },
      py::call_guard<Waiting>());
  f.def("minimize", &minimize);
  f.def("init_server", &fleet::init_server, py::call_guard<Waiting>());
  f.def("run_server", &fleet::run_server, py::call_guard<Waiting>());
  f.def("load_server", &fleet::load_server, py::call_guard<Waiting>());
  f.def("init_worker", &fleet::init_worker, py::call_guard<Waiting>());
  f.def("share_learned", &fleet::share_learned, py::call_guard<Waiting>());
  f.def("stop_worker", &fleet::stop_worker, py::call_guard<Waiting>());
  f.def("pull_parameters", &fleet::pull_parameters, py::call_guard<Waiting>());
  f.def(
      "save_servers",
      [](runtime::Scope& scope, const std::string& folder, const std::string& mode, bool text) {
        using Mode = ps::SaveOptions::Mode;
        fleet::save_servers(scope, folder,
                            {.mode = mode == "base"    ? Mode::kBase
                                     : mode == "delta" ? Mode::kDelta
                                                       : Mode::kAll,
                             .text = text});
      },
      py::arg("scope"), py::arg("folder"), py::arg("mode") = "all", py::arg("text") = false,
      py::call_guard<Waiting>());
  f.def("read_variables", [](const ir::Program& program, const std::string& folder,
                             const std::set<std::string>& names) {
    py::dict arrays;
    for (const auto& [name, value] : fleet::read_variables(program, folder, names))
      arrays[py::str(name)] = array_from(value);
    return arrays;
  });
  f.def("load_own_tables", &fleet::load_own_tables, py::call_guard<Waiting>());
  f.def("shrink", &fleet::shrink, py::call_guard<Waiting>());
  f.def("server_tables", &fleet::server_tables);
  f.def("serve_alone",
        py::overload_cast<ir::Program&, runtime::Scope&, const std::string&>(&fleet::serve_alone));
  f.def("look_up_on_servers", [](ir::Program& program) {
    const std::vector<std::string> tables = fleet::server_tables();
    strategies::look_up_on_servers(program, {tables.begin(), tables.end()});
  });
  f.def("sync_batch_norm", &strategies::take_statistics_over_all_workers);
}

}  // namespace fleetx::python
