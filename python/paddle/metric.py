"""Metrics: functions that are part of the program, and classes that count on fetched values."""
import numpy

from paddle._graph import emit
from paddle._native import native
from paddle.tensor import creation, logic, manipulation, math
from paddle.utils import unique_name

__all__ = ["accuracy", "Metric", "Accuracy", "Precision", "Recall", "Auc"]


def accuracy(input, label, k=1, correct=None, total=None, name=None):
    """Share of examples whose label is among the k highest scores: float32 [1]."""
    if input.shape[-1] == 1:  # one column: the only candidate is class 0
        return math.mean(manipulation.cast(logic.equal(label, creation.full([1], 0, label.dtype)), "float32"), name=name)
    made = emit("accuracy", {"x": input, "label": label}, {"k": 1 if k is None else int(k)}, None, name)
    for slot, counter in (("correct", correct), ("total", total)):
        if counter is not None:
            creation.assign(manipulation.cast(made[slot][0], counter.dtype), counter)
    out = made["out"][0]
    out.stop_gradient = True
    return out


def auc(input, label, curve="ROC", num_thresholds=2**12 - 1, topk=1, slide_steps=1, ins_tag_weight=None):
    """(AUC of all batches since the start, AUC of the last `slide_steps` batches, [four states]). The states live from
    step to step, under the names that scripts know, _generated_var_0 and so on: set them to zero before an evaluation."""
    if curve != "ROC":
        raise native.UnsupportedError("auc: only curve='ROC' is here")
    if ins_tag_weight is not None:
        raise native.UnsupportedError("auc: ins_tag_weight is not here")
    program = input.program
    layer = unique_name.generate("auc")

    def one(steps):
        length = num_thresholds + 1 if steps == 0 else (steps + 1) * (num_thresholds + 1) + 1
        states = []
        for _ in ("positive", "negative"):
            name = unique_name.generate("_generated_var")
            program.builder().state(name, "int64", [length], 0.0)
            states.append(program._variable(name))
        attrs = {"num_thresholds": int(num_thresholds), "curve": curve, "slide_steps": int(steps)}
        made = emit("auc", {"x": input, "label": label, "stat_pos": states[0], "stat_neg": states[1]}, attrs,
                    {"stat_pos_out": states[0], "stat_neg_out": states[1]}, layer)
        made["out"][0].stop_gradient = True
        return made["out"][0], states

    batch, batch_states = one(max(int(slide_steps), 0))
    whole, states = one(0)
    return whole, batch, batch_states + states


class Metric:
    def name(self):
        return self._name

    def reset(self):
        raise NotImplementedError

    def update(self, *args):
        raise NotImplementedError

    def accumulate(self):
        raise NotImplementedError

    def compute(self, *args):
        return args


class Accuracy(Metric):
    def __init__(self, topk=(1,), name=None):
        self.topk = tuple(topk) if isinstance(topk, (list, tuple)) else (topk,)
        self._name = name or "acc"
        self.reset()

    def reset(self):
        self.total, self.count = [0.0] * len(self.topk), [0] * len(self.topk)

    def compute(self, pred, label):
        pred, label = numpy.asarray(pred), numpy.asarray(label).reshape(-1, 1)
        order = numpy.argsort(-pred, axis=-1, kind="stable")[:, :max(self.topk)]
        return (order == label).astype("float32")

    def update(self, correct):
        correct = numpy.asarray(correct)
        for i, k in enumerate(self.topk):
            self.total[i] += float(correct[..., :k].sum())
            self.count[i] += correct.shape[0]
        return self.accumulate()

    def accumulate(self):
        values = [t / c if c else 0.0 for t, c in zip(self.total, self.count)]
        return values[0] if len(values) == 1 else values


class _Binary(Metric):
    def __init__(self, name):
        self._name = name
        self.reset()

    def reset(self):
        self.tp = self.fp = self.fn = 0

    def update(self, preds, labels):
        guess = numpy.asarray(preds).reshape(-1) > 0.5
        truth = numpy.asarray(labels).reshape(-1) != 0
        self.tp += int((guess & truth).sum())
        self.fp += int((guess & ~truth).sum())
        self.fn += int((~guess & truth).sum())


class Precision(_Binary):
    def __init__(self, name="precision"):
        super().__init__(name)

    def accumulate(self):
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Binary):
    def __init__(self, name="recall"):
        super().__init__(name)

    def accumulate(self):
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Auc(Metric):
    def __init__(self, curve="ROC", num_thresholds=4095, name="auc"):
        if curve != "ROC":
            raise native.UnsupportedError(f"Auc: only curve='ROC' is here, got {curve!r}")
        self._name, self._bins = name, num_thresholds
        self.reset()

    def reset(self):
        self._pos, self._neg = numpy.zeros(self._bins + 1, "int64"), numpy.zeros(self._bins + 1, "int64")

    def update(self, preds, labels):
        p = numpy.asarray(preds)
        p = p[:, 1] if p.ndim == 2 and p.shape[1] == 2 else p.reshape(-1)
        bins = (p * self._bins).astype("int64").clip(0, self._bins)
        truth = numpy.asarray(labels).reshape(-1) != 0
        numpy.add.at(self._pos, bins[truth], 1)
        numpy.add.at(self._neg, bins[~truth], 1)

    def accumulate(self):
        return area(self._pos, self._neg)


def area(pos, neg):
    """Area under the ROC curve from two histograms, by trapezoids from the highest bin down."""
    tp = numpy.concatenate([[0], numpy.cumsum(numpy.asarray(pos, "float64")[::-1])])
    fp = numpy.concatenate([[0], numpy.cumsum(numpy.asarray(neg, "float64")[::-1])])
    whole = tp[-1] * fp[-1]
    return float(((fp[1:] - fp[:-1]) * (tp[1:] + tp[:-1]) / 2).sum() / whole) if whole else 0.0
