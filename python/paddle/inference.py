"""Predictors: an inference model, fed and fetched by handles. Every device is this process; what the original chooses by
switches (memory, fusions, threads of its libraries) the planner decides here."""
import os

import numpy

from paddle import _refuse
from paddle._executor import Executor, LoDTensor, Scope, scope_guard
from paddle._native import native
from paddle.static import io as _io

__all__ = ["Config", "Predictor", "create_predictor", "PrecisionType", "PlaceType", "get_version"]


class PrecisionType:
    Float32, Half, Int8 = "float32", "float16", "int8"


class PlaceType:
    CPU, GPU, XPU, UNK = "cpu", "gpu", "xpu", "unknown"


class Config:
    """Where the model is: a folder, or its two files. Switches of the original are accepted where results are the same."""

    _SWITCHES = """disable_gpu enable_use_gpu switch_ir_optim switch_use_feed_fetch_ops switch_specify_input_names
        enable_memory_optim enable_mkldnn set_mkldnn_cache_capacity set_cpu_math_library_num_threads disable_glog_info
        enable_profile set_optim_cache_dir pass_builder delete_pass switch_ir_debug exp_disable_tensorrt_ops
        enable_mkldnn_bfloat16 set_mkldnn_op disable_mkldnn enable_new_ir enable_new_executor""".split()

    def __init__(self, model_dir=None, params_file=None):
        self._model, self._params = model_dir, params_file
        self._gpu = False

    def set_model(self, model_dir, params_file=None):
        self._model, self._params = model_dir, params_file

    def set_prog_file(self, path):
        self._model = path

    def set_params_file(self, path):
        self._params = path

    def model_dir(self):
        return self._model

    prog_file = model_dir

    def params_file(self):
        return self._params

    def use_gpu(self):
        return self._gpu

    def __getattr__(self, name):
        if name in Config._SWITCHES:
            def switch(*args, **kwargs):
                self._gpu = name == "enable_use_gpu" or self._gpu and name != "disable_gpu"
                return self
            return switch
        raise _refuse.refuse(f"paddle.inference.Config.{name}", "predictors without it: the planner chooses kernels itself")

    def files(self):
        """(program, parameters)"""
        if self._model is None:
            raise native.InvalidArgumentError("paddle.inference.Config: no model; call set_model(program, parameters)")
        if self._params is not None:
            return self._model, self._params
        for names in (("__model__", "__params__"), ("inference.pdmodel", "inference.pdiparams")):
            paths = [os.path.join(self._model, name) for name in names]
            if all(os.path.exists(path) for path in paths):
                return tuple(paths)
        return self._model + ".pdmodel", self._model + ".pdiparams"


class _Handle:
    """An input or an output of a predictor."""

    def __init__(self, name, shape):
        self._name, self._shape, self._value, self._lod = name, list(shape), None, []

    def name(self):
        return self._name

    def reshape(self, shape):
        self._shape = list(shape)

    def shape(self):
        return self._shape if self._value is None else list(numpy.shape(self._value))

    def set_lod(self, lod):
        self._lod = [list(level) for level in lod]

    def lod(self):
        return self._lod

    def copy_from_cpu(self, data):
        self._value = numpy.asarray(data)

    def copy_to_cpu(self):
        if self._value is None:
            raise native.InvalidArgumentError(f"predictor: '{self._name}' has no value yet; call run()")
        return self._value

    share_external_data = copy_from_cpu


class Predictor:
    """Runs an inference model: copy values to the handles of the inputs, run(), copy those of the outputs."""

    def __init__(self, config):
        program, parameters = config.files()
        self._exe, self._scope = Executor(), Scope()
        with scope_guard(self._scope):
            self._program, self._feeds, self._fetch = _io.read_inference_model(program, parameters)
        self._inputs = {name: _Handle(name, self._program.ir.shape(name)) for name in self._feeds}
        self._outputs = {v.name: _Handle(v.name, v.shape) for v in self._fetch}

    def get_input_names(self):
        return list(self._feeds)

    def get_output_names(self):
        return [v.name for v in self._fetch]

    def get_input_handle(self, name):
        return self._handle(self._inputs, name)

    def get_output_handle(self, name):
        return self._handle(self._outputs, name)

    get_input_tensor, get_output_tensor = get_input_handle, get_output_handle

    @staticmethod
    def _handle(handles, name):
        if name not in handles:
            raise native.InvalidArgumentError(f"predictor: there is no '{name}'; it has {', '.join(handles)}")
        return handles[name]

    def run(self, inputs=None):
        """With arrays (or PaddleTensors of 1.x), gives the outputs back in a list."""
        if inputs is not None:
            for number, value in enumerate(inputs):
                handle = self._inputs[getattr(value, "name", "") or self._feeds[number]]
                handle.copy_from_cpu(value.as_ndarray() if isinstance(value, PaddleTensor) else value)
                handle.set_lod(getattr(value, "lod", None) or [])
        missing = [name for name, handle in self._inputs.items() if handle._value is None]
        if missing:
            raise native.InvalidArgumentError(f"predictor: {', '.join(missing)} was not given: copy_from_cpu(array)")
        feed = {}
        for name, handle in self._inputs.items():
            feed[name] = LoDTensor(handle._value) if handle._lod else handle._value
            if handle._lod:
                feed[name].set_lod(handle._lod)
        results = self._exe.run(self._program, feed, self._fetch, scope=self._scope, return_numpy=False)
        for handle, value in zip(self._outputs.values(), results):
            handle.copy_from_cpu(value.numpy())
            handle.set_lod(value.lod())
        if inputs is None:
            return True
        as_tensors = any(isinstance(value, PaddleTensor) for value in inputs)
        outputs = [handle.copy_to_cpu() for handle in self._outputs.values()]
        return [PaddleTensor(o, name) for o, name in zip(outputs, self._outputs)] if as_tensors else outputs

    zero_copy_run = run

    def clone(self):
        other = Predictor.__new__(Predictor)
        other.__dict__.update(self.__dict__, _exe=Executor(),
                              _inputs={n: _Handle(n, h.shape()) for n, h in self._inputs.items()},
                              _outputs={n: _Handle(n, h.shape()) for n, h in self._outputs.items()})
        return other

    def clear_intermediate_tensor(self):
        """Memory belongs to plans; they are dropped when others need it."""

    try_shrink_memory = clear_intermediate_tensor


class PaddleTensor:
    """An array with a name, for predictors of 1.x."""

    def __init__(self, data=None, name=""):
        self.data, self.name, self.lod = None if data is None else numpy.asarray(data), name, []

    @property
    def shape(self):
        return list(numpy.shape(self.data))

    def as_ndarray(self):
        return self.data


def create_predictor(config):
    return Predictor(config)


def get_version():
    import paddle
    return f"version: {paddle.__version__}"


__getattr__ = _refuse.getter(__name__, {"PredictorPool": "create_predictor", "DataType": "numpy.dtype",
                                        "convert_to_mixed_precision": "paddle.static.amp.decorate"})
