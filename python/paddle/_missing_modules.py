"""Importing a module that is not here says so, and names what to use instead. One that had another name for a while is
found by that, too."""
import importlib
import importlib.util
import sys

_DYGRAPH = "static programs: paddle.enable_static(), Executor.run"
NEAREST = {
    "paddle.vision.transforms": "functions on NumPy arrays in the reader, or fleetx's data loaders",
    "paddle.vision.datasets": "paddle.dataset", "paddle.vision.models": "fleetx.applications",
    "paddle.vision.ops": "paddle.nn.functional", "paddle.text": "paddle.dataset, fleetx.text", "paddle.hapi": "a loop over Executor.run",
    "paddle.amp": "paddle.static.amp", "paddle.distribution": "paddle.uniform, paddle.normal",
    "paddle.v2": "paddle.fluid, and a loop over Executor.run", "paddle.trainer_config_helpers": "paddle.fluid.layers",
    "paddle.fluid.dygraph.nn": "paddle.nn, in a static program", "paddle.fluid.dygraph.layers": "paddle.nn.Layer",
    "paddle.fluid.layers.detection": "nothing: detection is not here", 
    "paddle.fluid.layers.rnn": "fluid.layers.rnn, GRUCell, LSTMCell, RNNCell, dynamic_decode as attributes of fluid.layers",
    "paddle.fluid.transpiler.collective": "fluid.DistributeTranspiler; classes that workers divide: paddle.distributed.split",
    "paddle.fluid.communicator": "fleet.init_worker",
    "paddle.fluid.incubate.fleet.base.fleet_base": "paddle.fluid.incubate.fleet.collective or .parameter_server.distribute_transpiler",
    "paddle.fluid.incubate.fleet.parameter_server.ir": "fleet.distributed_optimizer",
    "paddle.fluid.incubate.fleet.utils.fleet_barrier_util": "fleet.barrier_worker",
    "paddle.fluid.incubate.checkpoint": "fleet.save_persistables, paddle.static.save",
    "paddle.fluid.contrib.utils.lookup_table_utils": "fluid.io.load_persistables",
    "paddle.fluid.incubate.fleet.utils.fleet_util": "paddle.distributed.fleet.metrics, fleet.util",
    "paddle.fluid.proto": "Program.desc.serialize_to_string", "paddle.fluid.dataloader": "paddle.io",
    "paddle.fluid.contrib.model_stat": "print(program), Executor.plan, fluid.contrib.memory_usage",
    "paddle.fluid.net_drawer": "paddle.fluid.debugger.draw_block_graphviz", "paddle.fluid.graphviz": "paddle.fluid.debugger.draw_block_graphviz",
    "paddle.fluid.evaluator": "paddle.fluid.metrics", "paddle.fluid.ir": "nothing: programs are rewritten by strategies only",
    "paddle.fluid.contrib.slim": "nothing: quantization and pruning are not here", "paddleslim": "nothing",
    "paddle.distributed.fleet.base": "paddle.distributed.fleet",
    "paddle.distributed.fleet.meta_optimizers": "fleet.DistributedStrategy", "paddle.distributed.utils": "paddle.distributed, fleetrun",
    "paddle.distributed.cloud_utils": "fleetrun", "paddle.distributed.auto_parallel": "fleet.DistributedStrategy().auto",
    "paddle.incubate.distributed": "paddle.distributed.fleet", "paddle.batch": "paddle.batch, the function: import paddle",
    "paddle.base": "paddle.fluid",
}


ALSO_CALLED = {"paddle.fleet": "paddle.distributed.fleet",  # in 2.0 beta
               "paddle.static.nn.control_flow": "paddle.fluid.layers.control_flow", "paddle.static.nn.common": "paddle.static.nn",
               "paddle.distributed.transpiler": "paddle.fluid.transpiler", "paddle.static.nn.sequence_lod": "paddle.fluid.layers.sequence_lod",
               "paddle.fluid.core_avx": "paddle.fluid.core", "paddle.fluid.core_noavx": "paddle.fluid.core"}


class _Same:
    """Loads a module by another name: it is the module itself."""

    def __init__(self, name):
        self._module = importlib.import_module(name)
        self._spec = self._module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec


class Names:
    """Asked first: a folder would give a module that is there a second time."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        for alias, real in ALSO_CALLED.items():
            if name == alias or name.startswith(alias + "."):
                return importlib.util.spec_from_loader(name, _Same(real + name[len(alias):]))
        return None


class Finder:
    """Asked last, when nobody else has found a module."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("paddle.") or any(part.startswith("_") for part in name.split(".")):
            return None
        known = name
        while known and known not in NEAREST:
            known = known.rpartition(".")[0]
        nearest = f"; nearest: {NEAREST[known]}" if known else ""
        raise ModuleNotFoundError(f"No module named {name!r}: FleetX does not have it{nearest}. docs/python.md lists what there is",
                                  name=name)


def install():
    if not any(finder is Finder for finder in sys.meta_path):
        sys.meta_path.append(Finder)
        sys.meta_path.insert(0, Names)
