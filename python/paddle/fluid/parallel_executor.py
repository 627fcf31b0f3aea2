"""The executor of 1.x that ran a program on several devices of a process."""
from paddle import _graph
from paddle._executor import CompiledProgram, Executor, global_scope


class ParallelExecutor:
    """A program with its executor. One process is one worker whose cores work together on every op: `use_cuda` and
    `num_trainers` change nothing; fleetrun starts several workers."""

    def __init__(self, use_cuda, loss_name=None, main_program=None, share_vars_from=None, exec_strategy=None,
                 build_strategy=None, num_trainers=1, trainer_id=0, scope=None):
        self._scope = scope
        if scope is None and share_vars_from is not None:
            self._scope = share_vars_from._scope
        program = main_program if main_program is not None else _graph.default_main_program()
        self._program = CompiledProgram(program).with_data_parallel(loss_name, build_strategy, exec_strategy)
        self._executor = Executor()

    @property
    def device_count(self):
        return 1

    def run(self, fetch_list, feed=None, feed_dict=None, return_numpy=True):
        """Runs the program once; `feed_dict` is `feed` by its older name."""
        return self._executor.run(self._program, feed if feed is not None else feed_dict, fetch_list,
                                  scope=self._scope or global_scope(), return_numpy=return_numpy)

    def drop_local_exe_scopes(self):
        """Memory is planned: there is nothing to drop."""
