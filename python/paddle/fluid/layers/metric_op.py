"""Metrics inside a program, by the module of 1.x."""
from paddle.metric import accuracy, auc  # noqa: F401
