# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.layers.nn import cross_entropy as cross_entropy
from paddle.fluid.layers.nn import huber_loss as huber_loss
from paddle.fluid.layers.nn import kldiv_loss as kldiv_loss
from paddle.fluid.layers.nn import margin_rank_loss as margin_rank_loss
from paddle.fluid.layers.nn import mse_loss as mse_loss
from paddle.fluid.layers.nn import rank_loss as rank_loss
from paddle.fluid.layers.nn import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from paddle.fluid.layers.nn import softmax_with_cross_entropy as softmax_with_cross_entropy
from paddle.fluid.layers.nn import square_error_cost as square_error_cost
