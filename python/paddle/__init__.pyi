# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import common_ops_import as common_ops_import
from paddle import compat as compat
from paddle import dataset as dataset
from paddle import device as device
from paddle import distributed as distributed
from paddle import files as files
from paddle import fluid as fluid
from paddle import framework as framework
from paddle import incubate as incubate
from paddle import inference as inference
from paddle import io as io
from paddle import jit as jit
from paddle import metric as metric
from paddle import nn as nn
from paddle import onnx as onnx
from paddle import optimizer as optimizer
from paddle import profiler as profiler
from paddle import reader as reader
from paddle import regularizer as regularizer
from paddle import static as static
from paddle import tensor as tensor
from paddle import utils as utils
from paddle import version as version
from paddle import vision as vision
from paddle._batch import batch as batch
from paddle._dtype import bfloat16 as bfloat16
from paddle._dtype import bool_ as bool_
from paddle._dtype import dtype as dtype
from paddle._dtype import float16 as float16
from paddle._dtype import float32 as float32
from paddle._dtype import float64 as float64
from paddle._dtype import get_default_dtype as get_default_dtype
from paddle._dtype import int32 as int32
from paddle._dtype import int64 as int64
from paddle._dtype import set_default_dtype as set_default_dtype
from paddle._dtype import uint8 as uint8
from paddle._executor import Executor as Executor
from paddle._executor import global_scope as global_scope
from paddle._executor import scope_guard as scope_guard
from paddle._graph import Program as Program
from paddle._graph import default_main_program as default_main_program
from paddle._graph import default_startup_program as default_startup_program
from paddle._graph import program_guard as program_guard
from paddle._param import ParamAttr as ParamAttr
from paddle._places import CPUPlace as CPUPlace
from paddle._places import CUDAPinnedPlace as CUDAPinnedPlace
from paddle._places import CUDAPlace as CUDAPlace
from paddle._places import XPUPlace as XPUPlace
from paddle._places import is_compiled_with_cuda as is_compiled_with_cuda
from paddle._variable import Variable as Variable
from paddle.distributed import fleet as fleet
from paddle.files import load as load
from paddle.files import save as save
from paddle.tensor.creation import arange as arange
from paddle.tensor.creation import assign as assign
from paddle.tensor.creation import clone as clone
from paddle.tensor.creation import create_parameter as create_parameter
from paddle.tensor.creation import eye as eye
from paddle.tensor.creation import full as full
from paddle.tensor.creation import full_like as full_like
from paddle.tensor.creation import linspace as linspace
from paddle.tensor.creation import numel as numel
from paddle.tensor.creation import ones as ones
from paddle.tensor.creation import ones_like as ones_like
from paddle.tensor.creation import to_tensor as to_tensor
from paddle.tensor.creation import tril as tril
from paddle.tensor.creation import triu as triu
from paddle.tensor.creation import zeros as empty
from paddle.tensor.creation import zeros as zeros
from paddle.tensor.creation import zeros_like as empty_like
from paddle.tensor.creation import zeros_like as zeros_like
from paddle.tensor.linalg import cross as cross
from paddle.tensor.linalg import diag as diag
from paddle.tensor.linalg import diagonal as diagonal
from paddle.tensor.linalg import einsum as einsum
from paddle.tensor.linalg import kron as kron
from paddle.tensor.linalg import meshgrid as meshgrid
from paddle.tensor.linalg import moveaxis as moveaxis
from paddle.tensor.linalg import tensordot as tensordot
from paddle.tensor.linalg import trace as trace
from paddle.tensor.logic import allclose as allclose
from paddle.tensor.logic import equal as equal
from paddle.tensor.logic import equal_all as equal_all
from paddle.tensor.logic import greater_equal as greater_equal
from paddle.tensor.logic import greater_than as greater_than
from paddle.tensor.logic import is_empty as is_empty
from paddle.tensor.logic import is_tensor as is_tensor
from paddle.tensor.logic import isclose as isclose
from paddle.tensor.logic import less_equal as less_equal
from paddle.tensor.logic import less_than as less_than
from paddle.tensor.logic import logical_and as logical_and
from paddle.tensor.logic import logical_not as logical_not
from paddle.tensor.logic import logical_or as logical_or
from paddle.tensor.logic import logical_xor as logical_xor
from paddle.tensor.logic import not_equal as not_equal
from paddle.tensor.manipulation import broadcast_to as broadcast_to
from paddle.tensor.manipulation import cast as cast
from paddle.tensor.manipulation import chunk as chunk
from paddle.tensor.manipulation import concat as concat
from paddle.tensor.manipulation import crop as crop
from paddle.tensor.manipulation import expand as expand
from paddle.tensor.manipulation import expand_as as expand_as
from paddle.tensor.manipulation import flatten as flatten
from paddle.tensor.manipulation import flip as flip
from paddle.tensor.manipulation import flip as reverse
from paddle.tensor.manipulation import gather as gather
from paddle.tensor.manipulation import gather_nd as gather_nd
from paddle.tensor.manipulation import index_sample as index_sample
from paddle.tensor.manipulation import index_select as index_select
from paddle.tensor.manipulation import masked_fill as masked_fill
from paddle.tensor.manipulation import masked_select as masked_select
from paddle.tensor.manipulation import nonzero as nonzero
from paddle.tensor.manipulation import rank as rank
from paddle.tensor.manipulation import repeat_interleave as repeat_interleave
from paddle.tensor.manipulation import reshape as reshape
from paddle.tensor.manipulation import roll as roll
from paddle.tensor.manipulation import scatter as scatter
from paddle.tensor.manipulation import scatter_nd as scatter_nd
from paddle.tensor.manipulation import scatter_nd_add as scatter_nd_add
from paddle.tensor.manipulation import shape as shape
from paddle.tensor.manipulation import shard_index as shard_index
from paddle.tensor.manipulation import slice as slice
from paddle.tensor.manipulation import split as split
from paddle.tensor.manipulation import squeeze as squeeze
from paddle.tensor.manipulation import stack as stack
from paddle.tensor.manipulation import strided_slice as strided_slice
from paddle.tensor.manipulation import t as t
from paddle.tensor.manipulation import take_along_axis as take_along_axis
from paddle.tensor.manipulation import tile as tile
from paddle.tensor.manipulation import transpose as transpose
from paddle.tensor.manipulation import unbind as unbind
from paddle.tensor.manipulation import unique as unique
from paddle.tensor.manipulation import unsqueeze as unsqueeze
from paddle.tensor.manipulation import unstack as unstack
from paddle.tensor.manipulation import where as where
from paddle.tensor.math import abs as abs
from paddle.tensor.math import acos as acos
from paddle.tensor.math import add as add
from paddle.tensor.math import add_n as add_n
from paddle.tensor.math import addmm as addmm
from paddle.tensor.math import all as all
from paddle.tensor.math import any as any
from paddle.tensor.math import asin as asin
from paddle.tensor.math import atan as atan
from paddle.tensor.math import ceil as ceil
from paddle.tensor.math import clip as clip
from paddle.tensor.math import cos as cos
from paddle.tensor.math import cosh as cosh
from paddle.tensor.math import cumsum as cumsum
from paddle.tensor.math import dist as dist
from paddle.tensor.math import divide as divide
from paddle.tensor.math import dot as dot
from paddle.tensor.math import erf as erf
from paddle.tensor.math import exp as exp
from paddle.tensor.math import expm1 as expm1
from paddle.tensor.math import floor as floor
from paddle.tensor.math import floor_divide as floor_divide
from paddle.tensor.math import increment as increment
from paddle.tensor.math import isfinite as isfinite
from paddle.tensor.math import isinf as isinf
from paddle.tensor.math import isnan as isnan
from paddle.tensor.math import lerp as lerp
from paddle.tensor.math import log as log
from paddle.tensor.math import log10 as log10
from paddle.tensor.math import log1p as log1p
from paddle.tensor.math import log2 as log2
from paddle.tensor.math import logsumexp as logsumexp
from paddle.tensor.math import matmul as matmul
from paddle.tensor.math import max as max
from paddle.tensor.math import maximum as fmax
from paddle.tensor.math import maximum as maximum
from paddle.tensor.math import mean as mean
from paddle.tensor.math import min as min
from paddle.tensor.math import minimum as fmin
from paddle.tensor.math import minimum as minimum
from paddle.tensor.math import mm as bmm
from paddle.tensor.math import mm as mm
from paddle.tensor.math import multiplex as multiplex
from paddle.tensor.math import multiply as multiply
from paddle.tensor.math import mv as mv
from paddle.tensor.math import neg as neg
from paddle.tensor.math import norm as norm
from paddle.tensor.math import pow as pow
from paddle.tensor.math import prod as prod
from paddle.tensor.math import reciprocal as reciprocal
from paddle.tensor.math import remainder as floor_mod
from paddle.tensor.math import remainder as mod
from paddle.tensor.math import remainder as remainder
from paddle.tensor.math import round as round
from paddle.tensor.math import rsqrt as rsqrt
from paddle.tensor.math import scale as scale
from paddle.tensor.math import sign as sign
from paddle.tensor.math import sin as sin
from paddle.tensor.math import sinh as sinh
from paddle.tensor.math import sqrt as sqrt
from paddle.tensor.math import square as square
from paddle.tensor.math import stanh as stanh
from paddle.tensor.math import std as std
from paddle.tensor.math import subtract as subtract
from paddle.tensor.math import sum as sum
from paddle.tensor.math import tan as tan
from paddle.tensor.math import tanh as tanh
from paddle.tensor.math import trunc as trunc
from paddle.tensor.math import var as var
from paddle.tensor.random import bernoulli as bernoulli
from paddle.tensor.random import gaussian as gaussian
from paddle.tensor.random import multinomial as multinomial
from paddle.tensor.random import normal as normal
from paddle.tensor.random import rand as rand
from paddle.tensor.random import randint as randint
from paddle.tensor.random import randperm as randperm
from paddle.tensor.random import standard_normal as randn
from paddle.tensor.random import standard_normal as standard_normal
from paddle.tensor.random import uniform as uniform
from paddle.tensor.search import argmax as argmax
from paddle.tensor.search import argmin as argmin
from paddle.tensor.search import argsort as argsort
from paddle.tensor.search import sort as sort
from paddle.tensor.search import topk as topk

bool: Any


class FleetXError:
    ...


class InvalidArgumentError(FleetXError):
    ...


class Tensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...


class UnsupportedError(FleetXError):
    ...
def disable_static(place: Any = None) -> Any: ...
def enable_static() -> None: ...
def get_device() -> Any: ...
def get_flags(flags: Any) -> Any: ...
def in_dynamic_mode() -> bool: ...
def is_compiled_with_custom_device(device_type: Any) -> Any: ...
def is_compiled_with_xpu() -> Any: ...
def is_grad_enabled() -> Any: ...


class no_grad:
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> bool: ...
def seed(value: Any) -> Any: ...
def set_device(device: Any) -> Any: ...
def set_flags(flags: Any) -> Any: ...
def set_printoptions(precision: Any = None, threshold: Any = None, edgeitems: Any = None, sci_mode: Any = None, linewidth: Any = None) -> Any: ...
in_dygraph_mode = in_dynamic_mode
is_compiled_with_cinn = is_compiled_with_xpu
is_compiled_with_distribute = is_compiled_with_xpu
is_compiled_with_ipu = is_compiled_with_xpu
is_compiled_with_npu = is_compiled_with_xpu
is_compiled_with_rocm = is_compiled_with_xpu
