// What a script asks of the distributed run, and who this process is in it.
#include <pybind11/stl.h>

#include "bindings/convert.h"
#include "fleetx/fleet/distributed_strategy.h"
#include "fleetx/fleet/role_maker.h"
#include "fleetx/fleet/util.h"

namespace fleetx::python {
namespace {

using fleet::DistributedStrategy;
using fleet::RoleMaker;

void bind_strategy(py::module_& m) {
  py::class_<DistributedStrategy>(m, "DistributedStrategy")
      .def(py::init<>())
      .def("copy", [](const DistributedStrategy& s) { return s; })
      .def("get", [](const DistributedStrategy& s,
                     const std::string& name) { return to_python(s.get(name)); })
      .def("set", [](DistributedStrategy& s, const std::string& name,
                     const py::object& value) { s.set(name, attr_from(value)); })
      .def("get_configs", [](const DistributedStrategy& s,
                             const std::string& name) { return to_python(s.get_configs(name)); })
      .def("set_configs", [](DistributedStrategy& s, const std::string& name,
                             const py::dict& values) { s.set_configs(name, attrs_from(values)); })
      .def_static("field_names", &DistributedStrategy::field_names)
      .def_static("configs_names", &DistributedStrategy::configs_names)
      .def("enabled", &DistributedStrategy::enabled_strategies)
      .def("to_table", &DistributedStrategy::to_table)
      .def("to_text", &DistributedStrategy::to_text)
      .def("save_text", &DistributedStrategy::save_text)
      .def("load_text", &DistributedStrategy::load_text)
      .def("merge_text", [](DistributedStrategy& s, const std::string& text,
                            const std::string& source) { s.merge_text(text, source); })
      .def("__eq__",
           [](const DistributedStrategy& a, const DistributedStrategy& b) { return a == b; });
}

void bind_role_maker(py::module_& m) {
  py::class_<RoleMaker>(m, "RoleMaker")
      .def_static("from_environment",
                  [](bool is_collective) {
                    return RoleMaker::from_environment(is_collective ? fleet::JobKind::kCollective
                                                                     : fleet::JobKind::kServers);
                  })
      .def_static("user_defined",
                  [](int current_id, int role, int worker_num, std::vector<std::string> servers,
                     std::vector<std::string> workers) {
                    return RoleMaker::user_defined({.current_id = current_id,
                                                    .role = static_cast<fleet::Role>(role),
                                                    .worker_num = worker_num,
                                                    .server_endpoints = std::move(servers),
                                                    .worker_endpoints = std::move(workers)});
                  })
      .def_static("user_defined_collective",
                  [](int current_id, const std::vector<std::string>& workers) {
                    return RoleMaker::user_defined_collective(current_id, workers);
                  })
      .def_static("mpi_symmetric", [] { return RoleMaker::mpi_symmetric(); })
      .def("is_worker", &RoleMaker::is_worker)
      .def("is_server", &RoleMaker::is_server)
      .def("is_first_worker", &RoleMaker::is_first_worker)
      .def("is_heter_worker",
           [](const RoleMaker& r) { return r.role() == fleet::Role::kHeterWorker; })
      .def("worker_index", &RoleMaker::worker_index)
      .def("server_index", &RoleMaker::server_index)
      .def("worker_num", &RoleMaker::worker_num)
      .def("server_num", &RoleMaker::server_num)
      .def("node_num", &RoleMaker::node_num)
      .def("local_rank", &RoleMaker::local_rank)
      .def("worker_endpoints", &RoleMaker::worker_endpoints)
      .def("server_endpoints", &RoleMaker::server_endpoints)
      .def("is_non_distributed", &RoleMaker::is_non_distributed);
}

}  // namespace

void bind_roles(py::module_& m) {
  bind_strategy(m);
  bind_role_maker(m);
  m.def("get_file_shard", [](const std::vector<std::string>& files, int index, int num) {
    return fleet::get_file_shard(files, index, num);
  });
}

}  // namespace fleetx::python
