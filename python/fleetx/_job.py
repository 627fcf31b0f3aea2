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


def node():
    job = native.job_env()
    return job["node"], job["nodes"]


def local():
    job = native.job_env()
    return job["local_rank"], job["local_world"]
