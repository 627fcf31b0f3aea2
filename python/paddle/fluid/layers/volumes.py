"""Pooling on volumes (1.x)."""
from paddle._native import native
from paddle.nn.functional import _volumes, conv
from paddle.static.nn import conv3d

__all__ = ["conv3d", "pool3d", "adaptive_pool3d"]


def pool3d(input, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False, use_cudnn=True,
           ceil_mode=False, name=None, exclusive=True, data_format="NCDHW"):
    if pool_type not in ("max", "avg"):
        raise native.InvalidArgumentError(f"pool3d: pool_type must be 'max' or 'avg', got {pool_type!r}")
    if global_pooling:
        return _volumes.adaptive_pool3d(input, pool_type, 1, data_format)
    if pool_size == -1:
        raise native.InvalidArgumentError("pool3d: pool_size must be given unless global_pooling is set")
    return _volumes.pool3d(input, pool_type, pool_size, pool_stride, pool_padding, ceil_mode, exclusive, data_format)


def adaptive_pool3d(input, pool_size, pool_type="max", require_index=False, name=None):
    conv._no_mask("adaptive_pool3d", require_index)
    return _volumes.adaptive_pool3d(input, pool_type, pool_size)
