# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.distributed.fleet import api as api
from paddle.distributed.fleet import base as base
from paddle.distributed.fleet import data_generator as data_generator
from paddle.distributed.fleet import dataset as dataset
from paddle.distributed.fleet import meta_parallel as meta_parallel
from paddle.distributed.fleet import optimizer as optimizer
from paddle.distributed.fleet import strategy as strategy
from paddle.distributed.fleet import topology as topology
from paddle.distributed.fleet.api import UtilBase as UtilBase
from paddle.distributed.fleet.api import amp_init as amp_init
from paddle.distributed.fleet.api import barrier_worker as barrier_worker
from paddle.distributed.fleet.api import distributed_model as distributed_model
from paddle.distributed.fleet.api import distributed_optimizer as distributed_optimizer
from paddle.distributed.fleet.api import get_hybrid_communicate_group as get_hybrid_communicate_group
from paddle.distributed.fleet.api import get_lr as get_lr
from paddle.distributed.fleet.api import init as init
from paddle.distributed.fleet.api import init_server as init_server
from paddle.distributed.fleet.api import init_worker as init_worker
from paddle.distributed.fleet.api import is_first_worker as is_first_worker
from paddle.distributed.fleet.api import is_server as is_server
from paddle.distributed.fleet.api import is_worker as is_worker
from paddle.distributed.fleet.api import load_model as load_model
from paddle.distributed.fleet.api import local_rank as local_rank
from paddle.distributed.fleet.api import minimize as minimize
from paddle.distributed.fleet.api import node_num as node_num
from paddle.distributed.fleet.api import run_server as run_server
from paddle.distributed.fleet.api import save_cache_model as save_cache_model
from paddle.distributed.fleet.api import save_inference_model as save_inference_model
from paddle.distributed.fleet.api import save_persistables as save_persistables
from paddle.distributed.fleet.api import server_endpoints as server_endpoints
from paddle.distributed.fleet.api import server_index as server_index
from paddle.distributed.fleet.api import server_num as server_num
from paddle.distributed.fleet.api import set_lr as set_lr
from paddle.distributed.fleet.api import shrink as shrink
from paddle.distributed.fleet.api import split_files as split_files
from paddle.distributed.fleet.api import stop_worker as stop_worker
from paddle.distributed.fleet.api import util as util
from paddle.distributed.fleet.api import worker_endpoints as worker_endpoints
from paddle.distributed.fleet.api import worker_index as worker_index
from paddle.distributed.fleet.api import worker_num as worker_num
from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from paddle.distributed.fleet.base.role_maker import Role as Role
from paddle.distributed.fleet.base.role_maker import UserDefinedRoleMaker as UserDefinedRoleMaker
from paddle.distributed.fleet.data_generator import DataGenerator as DataGenerator
from paddle.distributed.fleet.data_generator import MultiSlotDataGenerator as MultiSlotDataGenerator
from paddle.distributed.fleet.data_generator import MultiSlotStringDataGenerator as MultiSlotStringDataGenerator
from paddle.distributed.fleet.dataset import DatasetBase as DatasetBase
from paddle.distributed.fleet.dataset import InMemoryDataset as InMemoryDataset
from paddle.distributed.fleet.dataset import QueueDataset as QueueDataset
from paddle.distributed.fleet.strategy import DistributedStrategy as DistributedStrategy
from paddle.distributed.fleet.topology import HybridCommunicateGroup as HybridCommunicateGroup
