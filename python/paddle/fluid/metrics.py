"""Metrics that are counted on fetched values, with the names of 1.x."""
import numpy

from paddle import _refuse
from paddle import metric as _new


class MetricBase:
    def __init__(self, name=None):
        self._name = name or type(self).__name__

    def reset(self):
        raise NotImplementedError


class Accuracy(MetricBase):
    """The mean of accuracies of batches, weighted by their size."""

    def __init__(self, name=None):
        super().__init__(name)
        self.reset()

    def reset(self):
        self.value = self.weight = 0.0

    def update(self, value, weight):
        value = float(numpy.asarray(value).reshape(-1)[0])
        self.value += value * weight
        self.weight += weight

    def eval(self):
        if self.weight == 0:
            raise ValueError("Accuracy.eval: there is no data; call update first")
        return self.value / self.weight


class Precision(_new.Precision):
    eval = _new.Precision.accumulate


class Recall(_new.Recall):
    eval = _new.Recall.accumulate


class Auc(_new.Auc):
    def __init__(self, name="auc", curve="ROC", num_thresholds=4095):
        super().__init__(curve, num_thresholds, name)

    eval = _new.Auc.accumulate


class EditDistance(MetricBase):
    """The mean distance, and the share of sequences that have an error."""

    def __init__(self, name=None):
        super().__init__(name)
        self.reset()

    def reset(self):
        self.total_distance, self.seq_num, self.instance_error = 0.0, 0, 0

    def update(self, distances, seq_num):
        distances = numpy.asarray(distances)
        self.total_distance += float(distances.sum())
        self.seq_num += int(seq_num)
        self.instance_error += int(seq_num) - int((distances == 0).sum())

    def eval(self):
        if self.seq_num == 0:
            raise ValueError("EditDistance.eval: there is no data; call update first")
        return self.total_distance / self.seq_num, self.instance_error / float(self.seq_num)


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks that were counted elsewhere."""

    def __init__(self, name=None):
        super().__init__(name)
        self.reset()

    def reset(self):
        self.num_infer_chunks = self.num_label_chunks = self.num_correct_chunks = 0

    def update(self, num_infer_chunks, num_label_chunks, num_correct_chunks):
        def number(value):
            return int(numpy.asarray(value).reshape(-1)[0])
        self.num_infer_chunks += number(num_infer_chunks)
        self.num_label_chunks += number(num_label_chunks)
        self.num_correct_chunks += number(num_correct_chunks)

    def eval(self):
        correct = float(self.num_correct_chunks)
        precision = correct / self.num_infer_chunks if self.num_infer_chunks else 0.0
        recall = correct / self.num_label_chunks if self.num_label_chunks else 0.0
        return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0


class CompositeMetric(MetricBase):
    def __init__(self, name=None):
        super().__init__(name)
        self._metrics = []

    def add_metric(self, metric):
        self._metrics.append(metric)

    def update(self, preds, labels):
        for m in self._metrics:
            m.update(preds, labels)

    def reset(self):
        for m in self._metrics:
            m.reset()

    def eval(self):
        return [m.eval() for m in self._metrics]


__getattr__ = _refuse.getter(__name__, {})
