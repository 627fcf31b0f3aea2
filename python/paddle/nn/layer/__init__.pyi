# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn.layer import activation as activation
from paddle.nn.layer import common as common
from paddle.nn.layer import container as container
from paddle.nn.layer import conv as conv
from paddle.nn.layer import distance as distance
from paddle.nn.layer import layers as layers
from paddle.nn.layer import loss as loss
from paddle.nn.layer import norm as norm
from paddle.nn.layer import pooling as pooling
from paddle.nn.layer import rnn as rnn
from paddle.nn.layer import transformer as transformer
from paddle.nn.layer import vision as vision
from paddle.nn.layer.layers import Layer as Layer
