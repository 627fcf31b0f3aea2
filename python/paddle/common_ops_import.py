"""What 2.0 imports for its own layers, and old scripts with it."""
from paddle.fluid import core  # noqa: F401
from paddle.fluid.data_feeder import check_dtype, check_type, check_variable_and_dtype  # noqa: F401
from paddle.fluid.layer_helper import LayerHelper  # noqa: F401
