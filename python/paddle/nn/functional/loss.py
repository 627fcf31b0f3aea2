"""Losses. reduction: 'mean' (default), 'sum' or 'none'."""
import numpy

from paddle._graph import call, emit
from paddle._native import native
from paddle.nn.functional import activation
from paddle.tensor import creation, logic, manipulation, math

__all__ = ["cross_entropy", "softmax_with_cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits",
           "mse_loss", "l1_loss", "smooth_l1_loss", "nll_loss", "kl_div", "log_loss", "square_error_cost",
           "margin_ranking_loss", "sigmoid_focal_loss", "dice_loss", "cosine_embedding_loss", "hinge_embedding_loss"]


def _reduced(what, loss, reduction, name=None):
    if reduction == "mean":
        return math.mean(loss, name=name)
    if reduction == "sum":
        return math.sum(loss, name=name)
    if reduction == "none":
        return loss
    raise native.InvalidArgumentError(f"{what}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")


def _with_class_axis(x, label, axis):
    """Hard labels with the class dimension of length 1."""
    if len(label.shape) == len(x.shape):
        return label
    return manipulation.unsqueeze(label, axis)


def _class_losses(x, label, ignore_index, soft_label, axis, is_logits, smoothing=0.0):
    attrs = {"soft_label": bool(soft_label), "ignore_index": int(ignore_index), "axis": int(axis)}
    if smoothing:
        if not is_logits:
            raise native.UnsupportedError("cross_entropy: label_smoothing needs logits (use_softmax=True)")
        attrs["smoothing"] = float(smoothing)
    return call("softmax_cross_entropy" if is_logits else "cross_entropy", {"x": x, "label": label}, attrs)


def cross_entropy(input, label, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1,
                  use_softmax=True, label_smoothing=0.0, name=None):
    """Softmax and cross entropy of logits; with use_softmax=False `input` holds probabilities. Labels are class
    numbers [N] or [N, 1], or, with soft_label, probabilities in the shape of input. label_smoothing: share of a class
    number that is spread evenly over all classes."""
    if not soft_label:
        label = _with_class_axis(input, label, axis)
    loss = _class_losses(input, label, ignore_index, soft_label, axis, use_softmax, label_smoothing)
    weights = None
    if weight is not None:
        if soft_label:
            by_class = weight if axis in (-1, len(input.shape) - 1) else manipulation.reshape(
                weight, [-1] + [1] * (len(input.shape) - 1 - axis % len(input.shape)))
            weights = math.sum(math.multiply(manipulation.cast(label, input.dtype), by_class), axis, keepdim=True)
        else:
            ids = manipulation.reshape(label, [-1])
            if ignore_index != -100:
                kept = _kept(ids, ignore_index)
                ids = math.multiply(ids, manipulation.cast(kept, ids.dtype))
                picked = math.multiply(manipulation.gather(weight, ids), kept)
            else:
                picked = manipulation.gather(weight, ids)
            weights = manipulation.reshape(picked, [0 if d < 0 else d for d in loss.shape]) \
                if list(loss.shape).count(-1) <= 1 else manipulation.reshape(picked, [-1, 1])
        weights.stop_gradient = True
        loss = math.multiply(loss, weights)
    if reduction != "mean":
        return _reduced("cross_entropy", loss, reduction, name)
    if weights is not None and not soft_label:
        return math.divide(math.sum(loss), math.sum(weights), name)
    if ignore_index != -100 and not soft_label:
        count = math.maximum(math.sum(_kept(label, ignore_index)), creation.full([1], 1.0))
        return math.divide(math.sum(loss), count, name)
    return math.mean(loss, name=name)


def _kept(label, ignore_index):
    kept = manipulation.cast(logic.not_equal(label, creation.full([1], ignore_index, label.dtype)), "float32")
    kept.stop_gradient = True
    return kept


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """One loss per example, [N, 1]."""
    attrs = {"soft_label": bool(soft_label), "ignore_index": int(ignore_index), "axis": int(axis)}
    if not soft_label:
        label = _with_class_axis(logits, label, axis)
    made = emit("softmax_cross_entropy", {"x": logits, "label": label}, attrs)
    loss = made["out"][0]
    return (loss, activation.softmax(logits, axis)) if return_softmax else loss


def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None):
    """-log-probability of the label; input holds log-probabilities."""
    return cross_entropy(math.exp(input), label, weight, ignore_index, reduction, axis=1, use_softmax=False, name=name)


def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):
    """Of probabilities; logarithms are cut at -100 as in the original."""
    low = float(numpy.exp(numpy.float32(-87.0)))

    def safe_log(p):
        return math.log(math.clip(p, low, 1.0))

    loss = math.neg(math.add(math.multiply(label, safe_log(input)),
                             math.multiply(math.scale(label, -1.0, 1.0), safe_log(math.scale(input, -1.0, 1.0)))))
    if weight is not None:
        loss = math.multiply(loss, weight)
    return _reduced("binary_cross_entropy", loss, reduction, name)


def binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None, name=None):
    loss = call("sigmoid_cross_entropy", {"x": logit, "label": label})
    if pos_weight is not None:
        factor = math.add_number(math.multiply(label, math.add_number(pos_weight, -1.0)), 1.0)
        loss = math.multiply(loss, factor)
    if weight is not None:
        loss = math.multiply(loss, weight)
    return _reduced("binary_cross_entropy_with_logits", loss, reduction, name)


def _element_loss(op, attrs, input, label, reduction, name):
    if input.shape != label.shape and all(d >= 0 for d in label.shape) and len(label.shape) != len(input.shape):
        label = manipulation.expand_as(label, input)
    return _reduced(op, call(op, {"x": input, "label": label}, attrs), reduction, name)


def mse_loss(input, label, reduction="mean", name=None):
    return _element_loss("mse_loss", {}, input, label, reduction, name)


def l1_loss(input, label, reduction="mean", name=None):
    return _element_loss("l1_loss", {}, input, label, reduction, name)


def smooth_l1_loss(input, label, reduction="mean", delta=1.0, name=None):
    return _element_loss("smooth_l1_loss", {"delta": float(delta)}, input, label, reduction, name)


def kl_div(input, label, reduction="mean", name=None):
    """label * (log(label) - input); input holds log-probabilities."""
    loss = call("kldiv_loss", {"x": input, "label": label})
    if reduction == "batchmean":
        batch = manipulation.cast(manipulation.shape(input)[0], "float32")
        return math.divide(math.sum(loss), batch, name)
    return _reduced("kl_div", loss, reduction, name)


def log_loss(input, label, epsilon=1e-4, name=None):
    """One loss per element, of probabilities."""
    return call("log_loss", {"x": input, "label": label}, {"epsilon": float(epsilon)}, name)


def square_error_cost(input, label):
    """(input - label)^2, one per element."""
    return call("mse_loss", {"x": input, "label": label})


def margin_ranking_loss(input, other, label, margin=0.0, reduction="mean", name=None):
    loss = activation.relu(math.add_number(math.multiply(math.subtract(other, input), label), margin))
    return _reduced("margin_ranking_loss", loss, reduction, name)


def hinge_embedding_loss(input, label, margin=1.0, reduction="mean", name=None):
    positive = manipulation.cast(logic.equal(label, creation.full([1], 1.0, label.dtype)), input.dtype)
    positive.stop_gradient = True
    far = activation.relu(math.scale(input, -1.0, margin))
    loss = math.add(math.multiply(input, positive), math.multiply(far, math.scale(positive, -1.0, 1.0)))
    return _reduced("hinge_embedding_loss", loss, reduction, name)


def cosine_embedding_loss(input1, input2, label, margin=0.0, reduction="mean", name=None):
    from paddle.nn.functional.common import cosine_similarity
    similarity = cosine_similarity(input1, input2, axis=-1)
    positive = manipulation.cast(logic.equal(label, creation.full([1], 1, label.dtype)), "float32")
    positive.stop_gradient = True
    apart = activation.relu(math.add_number(similarity, -margin))
    loss = math.add(math.multiply(math.scale(similarity, -1.0, 1.0), positive),
                    math.multiply(apart, math.scale(positive, -1.0, 1.0)))
    return _reduced("cosine_embedding_loss", loss, reduction, name)


def sigmoid_focal_loss(logit, label, normalizer=None, alpha=0.25, gamma=2.0, reduction="sum", name=None):
    loss = call("sigmoid_cross_entropy", {"x": logit, "label": label})
    p = activation.sigmoid(logit)
    inverse = math.scale(label, -1.0, 1.0)
    p_t = math.add(math.multiply(p, label), math.multiply(math.scale(p, -1.0, 1.0), inverse))
    alpha_t = math.add(math.scale(label, alpha), math.scale(inverse, 1.0 - alpha))
    loss = math.multiply(math.multiply(loss, math.pow(math.scale(p_t, -1.0, 1.0), gamma)), alpha_t)
    if normalizer is not None:
        loss = math.divide(loss, normalizer)
    return _reduced("sigmoid_focal_loss", loss, reduction, name)


def dice_loss(input, label, epsilon=1e-5, name=None):
    hot = manipulation.one_hot(manipulation.squeeze(label, -1), input.shape[-1])
    axes = list(range(1, len(input.shape)))
    inside = math.sum(math.multiply(input, hot), axes)
    total = math.add(math.sum(input, axes), math.sum(hot, axes))
    score = math.divide(math.scale(inside, 2.0), math.add_number(total, epsilon))
    return math.mean(math.scale(score, -1.0, 1.0), name=name)
