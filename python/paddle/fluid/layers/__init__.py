"""The layer functions of 1.x."""
from paddle import _refuse
from paddle._native import native
from paddle import tensor as _T
from paddle.fluid.layers import learning_rate_scheduler, nn, tensor
from paddle.fluid.layers.learning_rate_scheduler import *  # noqa: F401,F403
from paddle.fluid.layers.nn import *  # noqa: F401,F403
from paddle.fluid.layers.sequence import *  # noqa: F401,F403
from paddle.fluid.layers.tensor import *  # noqa: F401,F403
from paddle.metric import accuracy, auc  # noqa: F401
from paddle._graph import Variable  # noqa: F401
from paddle.nn.functional import unfold  # noqa: F401
from paddle.static import Print  # noqa: F401
from paddle.fluid.layers.compare import equal, greater_equal, greater_than, less_equal, less_than, not_equal  # noqa: F401
from paddle.fluid.layers.composed import *  # noqa: F401,F403
from paddle.tensor.logic import is_empty, logical_and, logical_not, logical_or, logical_xor  # noqa: F401
from paddle.tensor.math import (abs, ceil, cos, exp, floor, log, reciprocal, round, rsqrt, sign, sin, sqrt,  # noqa: F401
                                square)


def data(name, shape, append_batch_size=True, dtype="float32", lod_level=0, type=None, stop_gradient=True):
    """An input; the batch dimension is put in front unless the shape already has an unknown one."""
    from paddle import static
    if type not in (None, "lod_tensor"):
        raise native.UnsupportedError(f"data '{name}': type={type!r} is not here; inputs are tensors")
    shape = list(shape)
    if append_batch_size and not any(d is None or d < 0 for d in shape):
        shape = [-1] + shape
    variable = static.data(name, shape, dtype, lod_level)
    variable.program.loose_inputs[name] = variable.shape
    if not stop_gradient:
        variable.stop_gradient = False
    return variable


def get_tensor_from_selected_rows(x, name=None):
    """x: rows of a gradient that is sparse are looked at as a whole one."""
    return x


merge_selected_rows = get_tensor_from_selected_rows


def get_places(device_count=None, device_type=None):
    from paddle.fluid.layers import device
    return device.get_places(device_count, device_type)


def cumsum(x, axis=None, exclusive=None, reverse=None):
    from paddle._graph import call
    return call("cumsum", {"x": x}, {"axis": -1 if axis is None else axis, "exclusive": bool(exclusive),
                                     "reverse": bool(reverse)})


_BEAMS = "dynamic_decode of a BeamSearchDecoder, or the loop over steps and beams in Python; programs have no loops inside"
_REFUSED = {"lod_append": "lod_reset"}
_READER, _CTC, _DETECTION = "py_reader", "nothing: CTC is not here", "nothing: detection is not here"
_REFUSED.update({name: _DETECTION for name in """anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign
    collect_fpn_proposals density_prior_box detection_output distribute_fpn_proposals generate_mask_labels generate_proposal_labels
    generate_proposals iou_similarity locality_aware_nms matrix_nms multi_box_head multiclass_nms polygon_box_transform prior_box
    prroi_pool psroi_pool retinanet_detection_output retinanet_target_assign roi_align roi_perspective_transform roi_pool
    rpn_target_assign ssd_loss target_assign yolo_box yolov3_loss""".split()})
_REFUSED.update({name: _READER for name in ("open_files", "open_recordio_file", "random_data_generator", "Preprocessor", "batch",
                                            "shuffle", "multi_pass", "parallel")})
_REFUSED.update({"Assert": "fetch the condition, and look at it in Python", "random_crop": "a crop in the reader",
                 "hash": "numbers that the reader makes of words, below the size of the table",
                 "edit_distance": "fluid.metrics.EditDistance of distances that Python counts", "im2sequence": "unfold",
                 "warpctc": _CTC, "ctc_greedy_decoder": _CTC, "row_conv": "sequence_conv", "deformable_conv": "conv2d",
                 "py_func": "a function on fetched values, or an op in C++: docs/add-an-op.md"})
_REFUSED.update({name: _BEAMS for name in ("BasicDecoder", "gather_tree")})
_REFUSED.update({"center_loss": "nothing",
                 "spectral_norm": "nothing", "continuous_value_model": "nothing",
                 "shuffle_batch": "paddle.reader.shuffle"})
__getattr__ = _refuse.getter(__name__, _REFUSED, lazy={
    name: f"paddle.fluid.layers.{name}" for name in ("collective", "device", "loss", "metric_op", "ops", "sequence_lod", "utils")})

from paddle.fluid.layers.labels import *  # noqa: E402,F401,F403
from paddle.fluid.layers.recurrent import *  # noqa: E402,F401,F403
from paddle.fluid.layers.sampled import *  # noqa: E402,F401,F403
from paddle.fluid.layers.volumes import *  # noqa: E402,F401,F403
from paddle.fluid.layers.static_rnn import DynamicRNN, StaticRNN  # noqa: E402,F401
from paddle.fluid.layers import control_flow, io  # noqa: E402,F401
from paddle.fluid.layers.beams import *  # noqa: E402,F401,F403
from paddle.fluid.layers.decoding import BeamSearchDecoder, dynamic_decode  # noqa: E402,F401
from paddle.fluid.layers.cells import GRUCell, LSTMCell, RNNCell, rnn  # noqa: E402,F401
from paddle.fluid.layers.io import create_py_reader_by_data, double_buffer, py_reader, read_file  # noqa: E402,F401
from paddle.fluid.layers.control_flow import IfElse, Switch, case, cond, switch_case  # noqa: E402,F401
from paddle.fluid.layers.distributions import *  # noqa: E402,F401,F403
