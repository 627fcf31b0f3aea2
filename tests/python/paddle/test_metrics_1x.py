"""Counters of fluid that work on fetched values."""
import numpy as np
import pytest

import paddle.fluid as fluid


def test_accuracy_writes_counters_of_their_own_type(run):
    scores = fluid.data("scores", [None, 3])
    label = fluid.data("label", [None, 1], "int64")
    total, correct = fluid.layers.create_tensor("int64"), fluid.layers.create_tensor("int32")
    accuracy = fluid.layers.accuracy(scores, label, correct=correct, total=total)
    got = run({"scores": np.eye(3, dtype="float32"), "label": np.array([[0], [1], [1]])}, [accuracy, total, correct])
    assert got[0] == pytest.approx(2 / 3) and got[1] == 3 and got[1].dtype == "int64" and got[2] == 2


def test_edit_distance():
    metric = fluid.metrics.EditDistance("distance")
    with pytest.raises(ValueError, match="no data"):
        metric.eval()
    metric.update(np.array([[1.0], [0.0]]), 2)
    metric.update(np.array([[4.0], [3.0]]), 2)
    assert metric.eval() == (2.0, 0.75)


def test_chunks():
    metric = fluid.metrics.ChunkEvaluator()
    assert metric.eval() == (0.0, 0.0, 0.0)
    metric.update(10, np.array([8]), 5)
    assert metric.eval() == (0.5, 0.625, pytest.approx(2 * 0.5 * 0.625 / 1.125))


def test_weighted_average():
    average = fluid.average.WeightedAverage()
    average.add(2.0, 1)
    average.add(np.array([4.0]), 3)
    assert average.eval() == 3.5
    with pytest.raises(ValueError, match="no data"):
        fluid.average.WeightedAverage().eval()


def test_types_of_1_x():
    x = fluid.data("x", [None, 3])
    assert x.dtype == fluid.core.VarDesc.VarType.FP32 and x.type == fluid.core.VarDesc.VarType.LOD_TENSOR
