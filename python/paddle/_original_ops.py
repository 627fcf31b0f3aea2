"""Ops by the original's names, slots and attributes, for Block.append_op: each row says which function of this package
makes it. An attribute that a row does not list is refused by its name."""
import functools

from paddle import _graph
from paddle import tensor as T
from paddle._native import native
from paddle.fluid import layers as L
from paddle.nn import functional as F

# Say how the original computes or where an op came from; the results are the same.
_WITHOUT_EFFECT = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "use_mkldnn", "use_cudnn",
                   "use_quantizer", "mkldnn_data_type", "is_test", "force_cpu", "with_quant_attr", "use_calc_stream",
                   "numeric_stable_mode", "remote_prefetch", "x_data_format", "y_data_format", "trainer_id", "workspace_size_MB"}


class _Row:
    """`inputs`: slots in the order of the function's arguments; "X*" is a list, "Bias?" may be missing. `attrs`: names
    of attributes, "out_dtype:dtype" where the function calls it otherwise, "in_dtype:" where the inputs say it."""

    def __init__(self, function, inputs="X", attrs="", outputs="Out"):
        self.function, self.inputs, self.outputs = function, inputs.split(), outputs.split()
        self.attrs = {a.partition(":")[0]: a.partition(":")[2] if ":" in a else a for a in attrs.split()}

    def call(self, op, inputs, attrs):
        arguments = [self._input(op, slot, inputs) for slot in self.inputs]
        known = {slot.rstrip("*?") for slot in self.inputs}
        unknown = [slot for slot, values in inputs.items() if slot not in known and values]
        if unknown:
            raise native.UnsupportedError(f"append_op('{op}'): there is no input '{unknown[0]}' here; inputs: {' '.join(known)}")
        options = {}
        for name, value in attrs.items():
            if name in self.attrs:
                if self.attrs[name]:
                    options[self.attrs[name]] = value
            elif name not in _WITHOUT_EFFECT:
                raise native.UnsupportedError(
                    f"append_op('{op}'): there is no attribute '{name}' here; attributes: {' '.join(self.attrs) or 'none'}")
        made = self.function(*arguments, **options)
        if self.outputs[0].endswith("*"):
            return {self.outputs[0][:-1]: list(made)}
        return dict(zip(self.outputs, made if isinstance(made, tuple) else (made,)))

    @staticmethod
    def _input(op, slot, inputs):
        values = inputs.get(slot.rstrip("*?"), [])
        if slot.endswith("*"):
            return values
        if not values and not slot.endswith("?"):
            raise native.InvalidArgumentError(f"append_op('{op}') needs the input '{slot}'")
        return values[0] if values else None


# ---- functions whose arguments differ from the original's attributes ----
def _reduce(function, x, dim=None, keep_dim=False, reduce_all=False):
    return function(x, None if reduce_all else dim, keep_dim)


def _split(x, num=0, sections=(), axis=0):
    return T.split(x, list(sections) or num, axis)


def _slice(x, axes, starts, ends, decrease_axis=(), infer_flags=()):
    out = T.slice(x, axes, starts, ends)
    return T.squeeze(out, list(decrease_axis)) if decrease_axis else out


def _assign_value(shape, dtype, fp32_values=(), int32_values=(), int64_values=(), bool_values=()):
    import numpy
    values = fp32_values or int32_values or int64_values or bool_values
    return T.assign(numpy.asarray(values, dtype=str(dtype)).reshape(shape))


def _lookup(weight, ids, is_sparse=False, padding_idx=-1, last_is_one=False):
    rows = F.embedding(ids, weight, None if padding_idx == -1 else padding_idx, is_sparse)
    return T.squeeze(rows, -2) if last_is_one and len(ids.shape) > 1 and ids.shape[-1] == 1 else rows


def _layer_norm(x, scale, bias, begin_norm_axis=1, epsilon=1e-5):
    return F.layer_norm(x, list(x.shape[begin_norm_axis:]), scale, bias, epsilon)


def _dropout(x, dropout_prob=0.5, fix_seed=False, seed=0, dropout_implementation="downgrade_in_infer", is_test=False):
    return L.dropout(x, dropout_prob, is_test, seed if fix_seed else 0, None, dropout_implementation)


def _softmax_loss(logits, label, soft_label=False, ignore_index=-100, axis=-1):
    loss, softmax = L.softmax_with_cross_entropy(logits, label, soft_label, ignore_index, return_softmax=True, axis=axis)
    return loss, softmax


def _pool(x, pooling_type="max", ksize=-1, strides=(1, 1), paddings=(0, 0), global_pooling=False, ceil_mode=False,
          exclusive=True, data_format="NCHW", adaptive=False, padding_algorithm="EXPLICIT"):
    if adaptive or padding_algorithm != "EXPLICIT":
        raise native.UnsupportedError("append_op('pool2d'): adaptive=True and padding_algorithm are not here; use "
                                      "fluid.layers.adaptive_pool2d or fluid.layers.pool2d")
    return L.pool2d(x, ksize, pooling_type, strides, paddings, global_pooling, True, ceil_mode, None, exclusive, data_format)


def _top_k(x, k=1, axis=-1, largest=True, sorted=True):
    return tuple(T.topk(x, k, axis, largest, sorted))


def _accuracy(out, indices, label):
    """Of what top_k gave: its share of rows that hold the label. Correct and Total are not computed."""
    hits = T.any(T.equal(indices, T.cast(label, indices.dtype)), -1)
    return T.mean(T.cast(hits, "float32"))


def _scatter(x, ids, updates, overwrite=True):
    return T.scatter(x, ids, updates, overwrite)


def _collective(kind, x, ring_id=0, reduce_type=None, root=0, nranks=0):
    from paddle.fluid.layers import collective as C
    if kind == "allgather":
        return C._c_allgather(x, nranks, ring_id)
    if kind == "broadcast":
        return C._c_broadcast(T.assign(x), root, ring_id)
    return C._c_allreduce(x, None, kind, ring_id)


def _sgd(param, gradient, rate):
    return T.assign(T.subtract(param, T.multiply(gradient, rate)), param)


def _rows():
    rows = {}
    for name in ("relu relu6 sigmoid tanh exp log sqrt rsqrt square abs ceil floor round reciprocal sin cos softsign erf "
                 "logsigmoid sign acos asin atan selu").split():
        rows[name] = _Row(getattr(L, name))
    for name in "add sub mul div max min pow mod floordiv".split():
        rows[f"elementwise_{name}"] = _Row(getattr(L, f"elementwise_{name}"), "X Y", "axis")
    for name in "equal not_equal less_than less_equal greater_than greater_equal".split():
        rows[name] = _Row(getattr(T, name), "X Y", "axis:")
    for name in "and or xor".split():
        rows[f"logical_{name}"] = _Row(getattr(T, f"logical_{name}"), "X Y")
    for name in "sum mean max min prod all any".split():
        rows[f"reduce_{name}"] = _Row(functools.partial(_reduce, getattr(L, f"reduce_{name}")), "X", "dim keep_dim reduce_all")
    for name in ("sum", "max", "min", "prod"):
        rows[f"c_allreduce_{name}"] = _Row(functools.partial(_collective, name), "X", "ring_id")
    for name in ("reshape", "transpose", "squeeze", "unsqueeze"):
        attrs = {"reshape": "shape", "transpose": "axis:perm"}.get(name, "axes:axis")
        rows[name] = rows[name + "2"] = _Row(getattr(T, name), "X", attrs)
    rows.update({
        "logical_not": _Row(T.logical_not), "gelu": _Row(F.gelu, "X", "approximate"), "elu": _Row(F.elu, "X", "alpha"),
        "softplus": _Row(F.softplus), "leaky_relu": _Row(L.leaky_relu, "X", "alpha"), "swish": _Row(L.swish, "X", "beta"),
        "hard_sigmoid": _Row(L.hard_sigmoid, "X", "slope offset"), "stanh": _Row(T.stanh, "X", "scale_a scale_b"),
        "hard_swish": _Row(L.hard_swish, "X", "threshold scale offset"), "pow": _Row(L.pow, "X", "factor"),
        "clip": _Row(T.clip, "X", "min max"), "clip_by_norm": _Row(L.clip_by_norm, "X", "max_norm"),
        "scale": _Row(T.scale, "X", "scale bias bias_after_scale"), "mean": _Row(T.mean), "sum": _Row(T.add_n, "X*"),
        "mul": _Row(L.mul, "X Y", "x_num_col_dims y_num_col_dims"), "bmm": _Row(T.bmm, "X Y"), "dot": _Row(T.dot, "X Y"),
        "matmul": _Row(L.matmul, "X Y", "transpose_X:transpose_x transpose_Y:transpose_y alpha"),
        "matmul_v2": _Row(L.matmul, "X Y", "trans_x:transpose_x trans_y:transpose_y"),
        "cast": _Row(T.cast, "X", "out_dtype:dtype in_dtype:"), "assign": _Row(T.assign),
        "increment": _Row(T.increment, "X", "step:value"), "shape": _Row(T.shape, "Input"),
        "fill_constant": _Row(L.fill_constant, "", "shape dtype value str_value:"),
        "fill_constant_batch_size_like": _Row(L.fill_constant_batch_size_like, "Input",
                                              "shape dtype value input_dim_idx output_dim_idx"),
        "fill_zeros_like": _Row(T.zeros_like), "fill_any_like": _Row(T.full_like, "X", "value:fill_value dtype"),
        "assign_value": _Row(_assign_value, "", "shape dtype fp32_values int32_values int64_values bool_values"),
        "uniform_random": _Row(L.uniform_random, "", "shape dtype min max seed"),
        "gaussian_random": _Row(L.gaussian_random, "", "shape dtype mean std seed"),
        "concat": _Row(T.concat, "X*", "axis"), "stack": _Row(T.stack, "X*", "axis", "Y"),
        "split": _Row(_split, "X", "num sections axis", "Out*"), "unstack": _Row(T.unstack, "X", "axis num", "Y*"),
        "flatten2": _Row(L.flatten, "X", "axis"), "flatten": _Row(L.flatten, "X", "axis"),
        "flatten_contiguous_range": _Row(T.flatten, "X", "start_axis stop_axis"),
        "expand": _Row(L.expand, "X", "expand_times"), "expand_v2": _Row(T.expand, "X", "shape"),
        "tile": _Row(T.tile, "X", "repeat_times"), "slice": _Row(_slice, "Input", "axes starts ends decrease_axis infer_flags"),
        "gather": _Row(T.gather, "X Index", "axis overwrite:"), "gather_nd": _Row(T.gather_nd, "X Index"),
        "scatter": _Row(_scatter, "X Ids Updates", "overwrite"), "where": _Row(T.where, "Condition X Y"),
        "one_hot": _Row(L.one_hot, "X", "depth allow_out_of_range dtype:"), "one_hot_v2": _Row(T.one_hot, "X", "depth:num_classes dtype:"),
        "top_k": _Row(_top_k, "X", "k", "Out Indices"), "top_k_v2": _Row(_top_k, "X", "k axis largest sorted", "Out Indices"),
        "arg_max": _Row(T.argmax, "X", "axis keepdims:keepdim dtype flatten:"), "cumsum": _Row(L.cumsum, "X", "axis exclusive reverse"),
        "arg_min": _Row(T.argmin, "X", "axis keepdims:keepdim dtype flatten:"),
        "argsort": _Row(L.argsort, "X", "axis descending", "Out Indices"), "pad": _Row(L.pad, "X", "paddings pad_value"),
        "isfinite": _Row(L.isfinite), "softmax": _Row(F.softmax, "X", "axis"), "log_softmax": _Row(F.log_softmax, "X", "axis"),
        "cross_entropy": _Row(L.cross_entropy, "X Label", "soft_label ignore_index", "Y"),
        "softmax_with_cross_entropy": _Row(_softmax_loss, "Logits Label", "soft_label ignore_index axis", "Loss Softmax"),
        "sigmoid_cross_entropy_with_logits": _Row(L.sigmoid_cross_entropy_with_logits, "X Label", "ignore_index normalize"),
        "log_loss": _Row(L.log_loss, "Predicted Labels", "epsilon", "Loss"),
        "dropout": _Row(_dropout, "X", "dropout_prob is_test fix_seed seed dropout_implementation"),
        "lookup_table_v2": _Row(_lookup, "W Ids", "is_sparse padding_idx is_distributed:"),
        "lookup_table": _Row(functools.partial(_lookup, last_is_one=True), "W Ids", "is_sparse padding_idx is_distributed:"),
        "layer_norm": _Row(_layer_norm, "X Scale? Bias?", "begin_norm_axis epsilon", "Y"),
        "conv2d": _Row(F.conv2d, "Input Filter Bias?", "strides:stride paddings:padding dilations:dilation groups data_format",
                       "Output"),
        "pool2d": _Row(_pool, "X", "pooling_type ksize strides paddings global_pooling ceil_mode exclusive data_format "
                       "adaptive padding_algorithm"),
        "accuracy": _Row(_accuracy, "Out Indices Label", "", "Accuracy"),
        "c_broadcast": _Row(functools.partial(_collective, "broadcast"), "X", "ring_id root"),
        "c_allgather": _Row(functools.partial(_collective, "allgather"), "X", "ring_id nranks"),
        "c_sync_calc_stream": _Row(T.assign), "c_sync_comm_stream": _Row(T.assign, "X", "ring_id:"),
        "c_identity": _Row(T.assign, "X", "ring_id:"), "sgd": _Row(_sgd, "Param Grad LearningRate", "", "ParamOut"),
    })
    return rows


_ROWS = _rows()


def names():
    return sorted(_ROWS)


def _variables(block, values):
    return [block.var(v) if isinstance(v, str) else v for v in _graph.as_list(values)]


def append(block, type, inputs, outputs, attrs):
    """Adds the op; what it makes goes into `outputs`."""
    row = _ROWS.get(type)
    if row is None:
        import difflib
        near = difflib.get_close_matches(str(type), _ROWS, 3)
        raise native.UnsupportedError(f"append_op: the op '{type}' cannot be made by its name here; call the function that "
                                      "adds it" + (f", or did you mean {', '.join(near)}?" if near else ""))
    sources = {slot: _variables(block, values) for slot, values in (inputs or {}).items()}
    with _graph.program_guard(block.program):
        made = row.call(type, sources, dict(attrs or {}))
        for slot, targets in (outputs or {}).items():
            values = made.get(slot)
            if values is None:
                continue  # an output that serves the original's backward, as XShape and Mask
            for target, value in zip(_variables(block, targets), _graph.as_list(values)):
                _put(target, value)


def _put(target, value):
    if target is value:
        return
    if isinstance(target, _graph.Unwritten) and not target.is_written:
        target.take(value)
    else:
        T.assign(value, target)
