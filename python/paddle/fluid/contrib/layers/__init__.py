"""Layers of contrib."""
from paddle import _refuse
from paddle.static.nn import sparse_embedding  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"ctr_metric_bundle": "fleet.metrics", "shuffle_batch": "paddle.reader.shuffle"})
