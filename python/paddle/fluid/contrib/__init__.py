"""Of 1.x's contributions: mixed precision, layers for parameter servers, files in HDFS, decoupled decay."""
from paddle import _refuse
from paddle.fluid.contrib import layers, mixed_precision  # noqa: F401

_refused = _refuse.getter(__name__, {"slim": "nothing", "quantize": "nothing", "sparsity": "nothing",
                                     "model_stat": "the command fleetx plan", "summary": "the command fleetx plan",
                                     "op_freq_statistic": "print(program)",
                                     "op_frequence": "print(program)", "decoder": "StaticRNN, and a loop over beams in Python"},
                          lazy={"trainer": "paddle.fluid.contrib.trainer", "inferencer": "paddle.fluid.contrib.inferencer", "utils": "paddle.fluid.contrib.utils", "memory_usage_calc": "paddle.fluid.contrib.memory_usage_calc", "reader": "paddle.fluid.contrib.reader",
                                "extend_optimizer": "paddle.fluid.contrib.extend_optimizer"})


def __getattr__(name):
    if name == "extend_with_decoupled_weight_decay":
        from paddle.fluid.contrib.extend_optimizer import extend_with_decoupled_weight_decay
        return extend_with_decoupled_weight_decay
    if name in ("Trainer", "Inferencer", "CheckpointConfig", "BeginEpochEvent", "EndEpochEvent", "BeginStepEvent", "EndStepEvent"):
        from paddle.fluid.contrib import trainer
        return getattr(trainer, name)
    if name == "memory_usage":
        from paddle.fluid.contrib.memory_usage_calc import memory_usage
        return memory_usage
    if name in ("HDFSClient", "multi_download", "multi_upload"):
        from paddle.fluid.contrib import utils
        return getattr(utils, name)
    return _refused(name)
