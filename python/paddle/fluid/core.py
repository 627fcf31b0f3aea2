"""The few names of the C++ core that scripts use."""
from paddle._executor import (BuildStrategy, CPUPlace, CUDAPinnedPlace, CUDAPlace, EOFException, LoDTensor,  # noqa: F401
                              Scope, global_scope as _global_scope)
from paddle._lod_tensor import LoDTensorArray  # noqa: F401
from paddle._native import native as _native
from paddle._places import cuda_device_count as get_cuda_device_count, is_compiled_with_cuda  # noqa: F401
from paddle import _dtype, _refuse, is_compiled_with_xpu  # noqa: F401
from paddle._flags import flags as _flags

EnforceNotMet = _native.FleetXError


class VarDesc:
    class VarType:
        """Data types as 1.x called them; the same as paddle.float32 and so on."""
        FP16, FP32, FP64 = _dtype.float16, _dtype.float32, _dtype.float64
        INT32, INT64, UINT8, BOOL = _dtype.int32, _dtype.int64, _dtype.uint8, _dtype.bool_
        BF16 = _dtype.bfloat16
        LOD_TENSOR, SELECTED_ROWS = "lod_tensor", "selected_rows"
        LOD_TENSOR_ARRAY, READER, RAW, STEP_SCOPES = "lod_tensor_array", "reader", "raw", "step_scopes"
        INT8, INT16 = "int8", "int16"  # to compare with: nothing has them here
        FEED_MINIBATCH, FETCH_LIST = "feed_minibatch", "fetch_list"


def globals():
    """Flags of the original by name, to read and to set; they steer nothing here."""
    return _flags


_PREDICTOR = {"AnalysisConfig": "Config", "NativeConfig": "Config", "PaddleTensor": "PaddleTensor",
              "create_paddle_predictor": "create_predictor", "PaddlePredictor": "Predictor"}
_refused = _refuse.getter(__name__, {"op_proto_and_checker_maker": "strategies: programs are not rewritten op by op",
                                     **dict.fromkeys(("nvprof_init", "nvprof_start", "nvprof_stop", "nvprof_enable_record_event",
                                                      "nvprof_nvtx_push", "nvprof_nvtx_pop"), "fluid.profiler"), "PSGPU": "nothing", "Communicator": "nothing", "Tensor": "numpy arrays", "ops": "paddle.*"})


def __getattr__(name):
    if name in _PREDICTOR:
        from paddle import inference
        return getattr(inference, _PREDICTOR[name])
    return _refused(name)
