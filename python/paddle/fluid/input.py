from paddle.static.nn import embedding  # noqa: F401
from paddle.tensor.manipulation import one_hot  # noqa: F401
