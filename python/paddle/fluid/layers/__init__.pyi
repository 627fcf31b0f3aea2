# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle.fluid.layers import control_flow as control_flow
from paddle.fluid.layers import learning_rate_scheduler as learning_rate_scheduler
from paddle.fluid.layers import nn as nn
from paddle.fluid.layers import sequence as sequence
from paddle.fluid.layers import tensor as tensor
from paddle.fluid.layers.control_flow import Switch as Switch
from paddle.fluid.layers.control_flow import case as case
from paddle.fluid.layers.control_flow import cond as cond
from paddle.fluid.layers.control_flow import switch_case as switch_case
from paddle.fluid.layers.learning_rate_scheduler import cosine_decay as cosine_decay
from paddle.fluid.layers.learning_rate_scheduler import exponential_decay as exponential_decay
from paddle.fluid.layers.learning_rate_scheduler import inverse_time_decay as inverse_time_decay
from paddle.fluid.layers.learning_rate_scheduler import linear_lr_warmup as linear_lr_warmup
from paddle.fluid.layers.learning_rate_scheduler import natural_exp_decay as natural_exp_decay
from paddle.fluid.layers.learning_rate_scheduler import noam_decay as noam_decay
from paddle.fluid.layers.learning_rate_scheduler import piecewise_decay as piecewise_decay
from paddle.fluid.layers.learning_rate_scheduler import polynomial_decay as polynomial_decay
from paddle.fluid.layers.nn import adaptive_pool2d as adaptive_pool2d
from paddle.fluid.layers.nn import affine_channel as affine_channel
from paddle.fluid.layers.nn import autoincreased_step_counter as autoincreased_step_counter
from paddle.fluid.layers.nn import brelu as brelu
from paddle.fluid.layers.nn import clip as clip
from paddle.fluid.layers.nn import clip_by_norm as clip_by_norm
from paddle.fluid.layers.nn import cos_sim as cos_sim
from paddle.fluid.layers.nn import crop_tensor as crop_tensor
from paddle.fluid.layers.nn import cross_entropy as cross_entropy
from paddle.fluid.layers.nn import dropout as dropout
from paddle.fluid.layers.nn import embedding as embedding
from paddle.fluid.layers.nn import expand as expand
from paddle.fluid.layers.nn import fc as fc
from paddle.fluid.layers.nn import flatten as flatten
from paddle.fluid.layers.nn import gather as gather
from paddle.fluid.layers.nn import gaussian_random as gaussian_random
from paddle.fluid.layers.nn import hard_sigmoid as hard_sigmoid
from paddle.fluid.layers.nn import hard_swish as hard_swish
from paddle.fluid.layers.nn import huber_loss as huber_loss
from paddle.fluid.layers.nn import image_resize as image_resize
from paddle.fluid.layers.nn import kldiv_loss as kldiv_loss
from paddle.fluid.layers.nn import l2_normalize as l2_normalize
from paddle.fluid.layers.nn import label_smooth as label_smooth
from paddle.fluid.layers.nn import leaky_relu as leaky_relu
from paddle.fluid.layers.nn import log_loss as log_loss
from paddle.fluid.layers.nn import log_softmax as log_softmax
from paddle.fluid.layers.nn import margin_rank_loss as margin_rank_loss
from paddle.fluid.layers.nn import matmul as matmul
from paddle.fluid.layers.nn import mean as mean
from paddle.fluid.layers.nn import mse_loss as mse_loss
from paddle.fluid.layers.nn import mul as mul
from paddle.fluid.layers.nn import one_hot as one_hot
from paddle.fluid.layers.nn import pad as pad
from paddle.fluid.layers.nn import pad2d as pad2d
from paddle.fluid.layers.nn import pool2d as pool2d
from paddle.fluid.layers.nn import pow as pow
from paddle.fluid.layers.nn import prelu as prelu
from paddle.fluid.layers.nn import py_func as py_func
from paddle.fluid.layers.nn import rank_loss as rank_loss
from paddle.fluid.layers.nn import reduce_all as reduce_all
from paddle.fluid.layers.nn import reduce_any as reduce_any
from paddle.fluid.layers.nn import reduce_max as reduce_max
from paddle.fluid.layers.nn import reduce_mean as reduce_mean
from paddle.fluid.layers.nn import reduce_min as reduce_min
from paddle.fluid.layers.nn import reduce_prod as reduce_prod
from paddle.fluid.layers.nn import reduce_sum as reduce_sum
from paddle.fluid.layers.nn import reshape as reshape
from paddle.fluid.layers.nn import resize_bilinear as resize_bilinear
from paddle.fluid.layers.nn import resize_nearest as resize_nearest
from paddle.fluid.layers.nn import scale as scale
from paddle.fluid.layers.nn import scatter as scatter
from paddle.fluid.layers.nn import shuffle_channel as shuffle_channel
from paddle.fluid.layers.nn import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from paddle.fluid.layers.nn import smooth_l1 as smooth_l1
from paddle.fluid.layers.nn import soft_relu as soft_relu
from paddle.fluid.layers.nn import softmax as softmax
from paddle.fluid.layers.nn import softmax_with_cross_entropy as softmax_with_cross_entropy
from paddle.fluid.layers.nn import split as split
from paddle.fluid.layers.nn import square_error_cost as square_error_cost
from paddle.fluid.layers.nn import squeeze as squeeze
from paddle.fluid.layers.nn import sum as sum
from paddle.fluid.layers.nn import swish as swish
from paddle.fluid.layers.nn import topk as topk
from paddle.fluid.layers.nn import uniform_random as uniform_random
from paddle.fluid.layers.nn import unsqueeze as unsqueeze
from paddle.fluid.layers.sequence import lod_reset as lod_reset
from paddle.fluid.layers.sequence import sequence_concat as sequence_concat
from paddle.fluid.layers.sequence import sequence_conv as sequence_conv
from paddle.fluid.layers.sequence import sequence_enumerate as sequence_enumerate
from paddle.fluid.layers.sequence import sequence_expand as sequence_expand
from paddle.fluid.layers.sequence import sequence_expand_as as sequence_expand_as
from paddle.fluid.layers.sequence import sequence_first_step as sequence_first_step
from paddle.fluid.layers.sequence import sequence_last_step as sequence_last_step
from paddle.fluid.layers.sequence import sequence_mask as sequence_mask
from paddle.fluid.layers.sequence import sequence_pad as sequence_pad
from paddle.fluid.layers.sequence import sequence_pool as sequence_pool
from paddle.fluid.layers.sequence import sequence_reshape as sequence_reshape
from paddle.fluid.layers.sequence import sequence_reverse as sequence_reverse
from paddle.fluid.layers.sequence import sequence_softmax as sequence_softmax
from paddle.fluid.layers.tensor import argmax as argmax
from paddle.fluid.layers.tensor import argmin as argmin
from paddle.fluid.layers.tensor import argsort as argsort
from paddle.fluid.layers.tensor import concat as concat
from paddle.fluid.layers.tensor import create_tensor as create_tensor
from paddle.fluid.layers.tensor import diag as diag
from paddle.fluid.layers.tensor import fill_constant as fill_constant
from paddle.fluid.layers.tensor import fill_constant_batch_size_like as fill_constant_batch_size_like
from paddle.fluid.layers.tensor import has_inf as has_inf
from paddle.fluid.layers.tensor import has_nan as has_nan
from paddle.fluid.layers.tensor import isfinite as isfinite
from paddle.fluid.layers.tensor import ones as ones
from paddle.fluid.layers.tensor import range as range
from paddle.fluid.layers.tensor import reverse as reverse
from paddle.fluid.layers.tensor import sums as sums
from paddle.fluid.layers.tensor import zeros as zeros
from paddle.metric import accuracy as accuracy
from paddle.metric import auc as auc
from paddle.nn.functional.activation import elu as elu
from paddle.nn.functional.activation import gelu as gelu
from paddle.nn.functional.activation import hardshrink as hard_shrink
from paddle.nn.functional.activation import log_sigmoid as logsigmoid
from paddle.nn.functional.activation import maxout as maxout
from paddle.nn.functional.activation import mish as mish
from paddle.nn.functional.activation import relu as relu
from paddle.nn.functional.activation import relu6 as relu6
from paddle.nn.functional.activation import selu as selu
from paddle.nn.functional.activation import sigmoid as sigmoid
from paddle.nn.functional.activation import softplus as softplus
from paddle.nn.functional.activation import softshrink as softshrink
from paddle.nn.functional.activation import softsign as softsign
from paddle.nn.functional.activation import tanh as tanh
from paddle.nn.functional.activation import tanhshrink as tanh_shrink
from paddle.nn.functional.activation import thresholded_relu as thresholded_relu
from paddle.nn.functional.common import pixel_shuffle as pixel_shuffle
from paddle.nn.functional.loss import dice_loss as dice_loss
from paddle.static import Print as Print
from paddle.static.nn import batch_norm as batch_norm
from paddle.static.nn import conv2d as conv2d
from paddle.static.nn import conv2d_transpose as conv2d_transpose
from paddle.static.nn import group_norm as group_norm
from paddle.static.nn import instance_norm as instance_norm
from paddle.static.nn import layer_norm as layer_norm
from paddle.tensor.creation import assign as assign
from paddle.tensor.creation import create_global_var as create_global_var
from paddle.tensor.creation import create_parameter as create_parameter
from paddle.tensor.creation import eye as eye
from paddle.tensor.creation import linspace as linspace
from paddle.tensor.creation import numel as size
from paddle.tensor.creation import ones_like as ones_like
from paddle.tensor.creation import tril as tril
from paddle.tensor.creation import triu as triu
from paddle.tensor.creation import zeros_like as zeros_like
from paddle.tensor.logic import equal as equal
from paddle.tensor.logic import greater_equal as greater_equal
from paddle.tensor.logic import greater_than as greater_than
from paddle.tensor.logic import is_empty as is_empty
from paddle.tensor.logic import less_equal as less_equal
from paddle.tensor.logic import less_than as less_than
from paddle.tensor.logic import logical_and as logical_and
from paddle.tensor.logic import logical_not as logical_not
from paddle.tensor.logic import logical_or as logical_or
from paddle.tensor.logic import logical_xor as logical_xor
from paddle.tensor.logic import not_equal as not_equal
from paddle.tensor.manipulation import cast as cast
from paddle.tensor.manipulation import expand_as as expand_as
from paddle.tensor.manipulation import gather_nd as gather_nd
from paddle.tensor.manipulation import rank as rank
from paddle.tensor.manipulation import scatter_nd as scatter_nd
from paddle.tensor.manipulation import scatter_nd_add as scatter_nd_add
from paddle.tensor.manipulation import shape as shape
from paddle.tensor.manipulation import slice as slice
from paddle.tensor.manipulation import stack as stack
from paddle.tensor.manipulation import strided_slice as strided_slice
from paddle.tensor.manipulation import transpose as transpose
from paddle.tensor.manipulation import unbind as unbind
from paddle.tensor.manipulation import unstack as unstack
from paddle.tensor.manipulation import where as where
from paddle.tensor.math import abs as abs
from paddle.tensor.math import acos as acos
from paddle.tensor.math import asin as asin
from paddle.tensor.math import atan as atan
from paddle.tensor.math import ceil as ceil
from paddle.tensor.math import cos as cos
from paddle.tensor.math import erf as erf
from paddle.tensor.math import exp as exp
from paddle.tensor.math import floor as floor
from paddle.tensor.math import increment as increment
from paddle.tensor.math import log as log
from paddle.tensor.math import multiplex as multiplex
from paddle.tensor.math import reciprocal as reciprocal
from paddle.tensor.math import round as round
from paddle.tensor.math import rsqrt as rsqrt
from paddle.tensor.math import sign as sign
from paddle.tensor.math import sin as sin
from paddle.tensor.math import sqrt as sqrt
from paddle.tensor.math import square as square
from paddle.tensor.math import stanh as stanh

DTypeLike = str | type | numpy.dtype

elementwise_add: Any
elementwise_div: Any
elementwise_floordiv: Any
elementwise_max: Any
elementwise_min: Any
elementwise_mod: Any
elementwise_mul: Any
elementwise_pow: Any
elementwise_sub: Any
def cumsum(x: Variable, axis: int | Sequence[int] | None = None, exclusive: Any = None, reverse: Any = None) -> Variable: ...
def data(name: str | None, shape: Sequence[int | None], append_batch_size: Any = True, dtype: DTypeLike = 'float32', lod_level: Any = 0, type: Any = None, stop_gradient: Any = True) -> Variable: ...
