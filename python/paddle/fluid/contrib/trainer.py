"""Training and inference by functions that build the network, as before 1.0 (fluid.Trainer, fluid.Inferencer) and in
fluid.contrib of 1.x."""
import contextlib

import numpy

from paddle import _executor, _graph, _refuse
from paddle._native import native
from paddle.utils import unique_name


class BeginEpochEvent:
    def __init__(self, epoch_id):
        self.epoch = epoch_id


class EndEpochEvent(BeginEpochEvent):
    pass


class BeginStepEvent:
    """fetch_metrics = False: the step computes no metrics for its EndStepEvent."""

    def __init__(self, epoch_id, step_id):
        self.epoch, self.step, self.fetch_metrics = epoch_id, step_id, True


class EndStepEvent:
    def __init__(self, epoch_id, step_id, metrics):
        self.epoch, self.step, self.metrics = epoch_id, step_id, metrics


class _Network:
    """A program, its scope and an executor."""

    def __init__(self, place):
        self.scope, self.startup_program = _executor.Scope(), _graph.Program()
        self.exe = _executor.Executor(place)

    @contextlib.contextmanager
    def _guard(self, program):
        with _executor.scope_guard(self.scope), _graph.program_guard(program, self.startup_program):
            yield

    def _feeder(self, program, feed_order):
        from paddle.fluid.data_feeder import DataFeeder
        names = sorted(feed_order, key=feed_order.get) if isinstance(feed_order, dict) else feed_order
        if names is None:
            names = [v.name for v in program.list_vars() if v.is_data and not v.name.endswith(_graph.LENGTHS_SUFFIX)]
        return DataFeeder([program.global_block().var(name) for name in names], self.exe.place, program)


class Trainer(_Network):
    """train_func() builds the network and gives the loss, or a list of it and metrics; optimizer_func() gives the optimizer.
    param_path: parameters to begin with."""

    def __init__(self, train_func, optimizer_func, param_path=None, place=None, parallel=False, checkpoint_config=None):
        from paddle.fluid import io
        if checkpoint_config is not None:
            raise native.UnsupportedError("Trainer: checkpoint_config is not here; nearest: trainer.save_params in the event "
                                          "handler, and param_path to go on")
        super().__init__(place)
        self.train_program, self._stopped = _graph.Program(), False
        with self._guard(self.train_program), unique_name.guard():
            self.train_func_outputs = _graph.as_list(train_func())
            self.test_program = self.train_program.clone(for_test=True)
            optimizer_func().minimize(self.train_func_outputs[0])
            self.exe.run(self.startup_program)
            if param_path:
                io.load_persistables(self.exe, param_path, self.train_program)

    def stop(self):
        """Ends train() after the step that runs."""
        self._stopped = True

    def train(self, num_epochs, event_handler, reader=None, feed_order=None):
        """Runs over the batches that reader() gives; event_handler is told of every epoch and step."""
        self._stopped = False
        feeder = self._feeder(self.train_program, feed_order)
        for epoch in range(num_epochs):
            event_handler(BeginEpochEvent(epoch))
            for step, batch in enumerate(reader()):
                if self._stopped:
                    return
                begin = BeginStepEvent(epoch, step)
                event_handler(begin)
                metrics = self._run(self.train_program, feeder, batch, begin.fetch_metrics)
                event_handler(EndStepEvent(epoch, step, metrics))
            if self._stopped:
                return
            event_handler(EndEpochEvent(epoch))

    def test(self, reader, feed_order):
        """Means, over all batches, of what train_func gives."""
        feeder = self._feeder(self.test_program, feed_order)
        values = [self._run(self.test_program, feeder, batch) for batch in reader()]
        return [numpy.mean([numpy.mean(v) for v in column]) for column in zip(*values)]

    def _run(self, program, feeder, batch, fetches=True):
        with self._guard(program):
            fetch = [v.name for v in self.train_func_outputs] if fetches else []
            return self.exe.run(program, feed=feeder.feed(batch), fetch_list=fetch)

    def save_params(self, param_path):
        from paddle.fluid import io
        with self._guard(self.train_program):
            io.save_persistables(self.exe, param_path, self.train_program)

    def save_inference_model(self, param_path, feeded_var_names, target_var_indexes):
        from paddle.fluid import io
        with self._guard(self.train_program):
            io.save_inference_model(param_path, feeded_var_names, [self.train_func_outputs[i] for i in target_var_indexes],
                                    self.exe, self.test_program)


class Inferencer(_Network):
    """infer_func() builds the network and gives what is to be known; param_path: where a Trainer saved its parameters."""

    def __init__(self, infer_func, param_path, place=None, parallel=False):
        from paddle.fluid import io
        super().__init__(place)
        self.inference_program = _graph.Program()
        with self._guard(self.inference_program), unique_name.guard():
            self.predict_var = infer_func()
            self.exe.run(self.startup_program)
            io.load_params(self.exe, param_path, self.inference_program)
        self.inference_program = self.inference_program.clone(for_test=True)

    def infer(self, inputs, return_numpy=True):
        """Values for a dict of inputs by name."""
        if not isinstance(inputs, dict):
            raise ValueError("Inferencer.infer takes a dict of values by name of the input")
        with self._guard(self.inference_program):
            return self.exe.run(self.inference_program, feed=inputs, fetch_list=_graph.as_list(self.predict_var),
                                return_numpy=return_numpy)


__getattr__ = _refuse.getter(__name__, {"CheckpointConfig": "Trainer.save_params in the event handler, and param_path"})
