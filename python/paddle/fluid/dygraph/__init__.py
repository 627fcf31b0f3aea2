"""What scripts of static programs import from fluid.dygraph. Programs are static here: nothing runs by itself."""
from paddle import _refuse
from paddle import no_grad  # noqa: F401
from paddle._refuse import refused as _refused
from paddle.distributed import ParallelEnv
from paddle.nn import LayerList, ParameterList, Sequential  # noqa: F401
from paddle.nn import Layer  # noqa: F401

Env = ParallelEnv
_STATIC = "static programs: Executor.run"


def enabled():
    return False


in_dygraph_mode = enabled

guard = _refused("paddle.fluid.dygraph.guard", _STATIC)
# Layers of eager 1.x have arguments of their own; paddle.nn has those of 2.0.
__getattr__ = _refuse.getter(__name__, {
    **{name: _STATIC for name in ("to_variable", "DataParallel", "prepare_context", "TracedLayer", "declarative", "grad",
                                  "dygraph_to_static_func", "enable_dygraph", "disable_dygraph", "jit", "ProgramTranslator")},
    **{name: f"paddle.nn.{name}" for name in ("Conv2D", "BatchNorm", "Embedding", "LayerNorm", "Linear", "Dropout",
                                              "GroupNorm", "Conv2DTranspose", "PReLU")},
    "Pool2D": "paddle.nn.MaxPool2D", "FC": "paddle.nn.Linear", "GRUUnit": "paddle.nn.GRUCell", "NCE": "nothing",
    "save_dygraph": "paddle.static.save", "load_dygraph": "paddle.static.load", "Conv3D": "paddle.nn.Conv2D",
    "NoamDecay": "paddle.optimizer.lr.NoamDecay", "PiecewiseDecay": "paddle.optimizer.lr.PiecewiseDecay",
    "CosineDecay": "fluid.layers.cosine_decay", "learning_rate_scheduler": "fluid.layers"},
    lazy={"parallel": "paddle.fluid.dygraph.parallel", "base": "paddle.fluid.dygraph.base"})
