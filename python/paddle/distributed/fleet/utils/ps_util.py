"""Inference while a job trains."""
from paddle import _graph
from paddle._native import native
from paddle.distributed.fleet import api


class DistributedInfer:
    """A program whose lookups ask the servers for rows, or the tables that a process without servers keeps itself. Where
    there are none the program is the one that was given."""

    def __init__(self, main_program=None, startup_program=None):
        self._main = main_program or _graph.default_main_program()
        self._startup = startup_program or _graph.default_startup_program()

    def init_distributed_infer_env(self, exe, loss=None, role_maker=None, dirname=None):
        if api._roles is None:
            api.init(role_maker)
        if api.server_num() > 0:
            if api.is_server():
                api.init_server(dirname)
                api.run_server()
            else:
                exe.run(self._startup)
                api.init_worker()
        elif dirname is not None:
            from paddle.fluid import io
            exe.run(self._startup)
            io.load_persistables(exe, dirname, self._main)

    def get_dist_infer_program(self):
        if api.server_num() == 0 and not api._own_tables():
            return self._main
        program = self._main.clone(for_test=True)
        native.fleet.look_up_on_servers(program.ir)
        return program
