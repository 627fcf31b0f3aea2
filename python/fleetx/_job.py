"""This process in its job: as fleet.init() was told, before that as the launcher says. Rank 0 of 1 where there is none."""
from paddle._native import native


def rank():
    return native.job_env()["rank"]


def world():
    return native.job_env()["world"]


def worker():
    """(index, number) among the workers of a job that may have servers, too."""
    from paddle.distributed.fleet import api
    return (rank(), world()) if api._roles is None else (api.worker_index(), api.worker_num())


def data_part():
    """(index, number) of this worker's part of a batch. Workers that divide layers (hybrid_configs["mp_degree"]) are fed the
    same, as are the stages of a pipeline. Before fleet.distributed_optimizer every worker counts for itself."""
    from paddle.distributed.fleet import api
    strategy = api._strategy if api._optimizer is None else api._optimizer.user_defined_strategy
    if api._optimizer is not None and api._optimizer.strategy_text:  # of auto: what it has chosen
        strategy = api.DistributedStrategy()
        strategy.native.merge_text(api._optimizer.strategy_text, "the strategy of minimize")
    degrees = {} if strategy is None else strategy.hybrid_configs
    layers, stages = degrees.get("mp_degree", 1), degrees.get("pp_degree", 1)
    parts = max(1, world() // (layers * stages))
    return rank() // layers % parts, parts


def node():
    job = native.job_env()
    return job["node"], job["nodes"]


def local():
    job = native.job_env()
    return job["local_rank"], job["local_world"]
