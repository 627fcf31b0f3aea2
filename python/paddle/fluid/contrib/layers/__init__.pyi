# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.contrib.layers import metric_op as metric_op
from paddle.fluid.contrib.layers import nn as nn
from paddle.fluid.contrib.layers import rnn_impl as rnn_impl
from paddle.fluid.contrib.layers.metric_op import ctr_metric_bundle as ctr_metric_bundle
from paddle.fluid.contrib.layers.nn import batch_fc as batch_fc
from paddle.fluid.contrib.layers.nn import fused_elemwise_activation as fused_elemwise_activation
from paddle.fluid.contrib.layers.nn import partial_concat as partial_concat
from paddle.fluid.contrib.layers.nn import partial_sum as partial_sum
from paddle.fluid.contrib.layers.nn import shuffle_batch as shuffle_batch
from paddle.fluid.contrib.layers.rnn_impl import BasicGRUUnit as BasicGRUUnit
from paddle.fluid.contrib.layers.rnn_impl import BasicLSTMUnit as BasicLSTMUnit
from paddle.fluid.contrib.layers.rnn_impl import basic_gru as basic_gru
from paddle.fluid.contrib.layers.rnn_impl import basic_lstm as basic_lstm
from paddle.static.nn import sparse_embedding as sparse_embedding
from paddle.tensor.manipulation import index_sample as index_sample
