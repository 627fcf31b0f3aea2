"""This process in its job, as the launcher says: rank 0 of 1 where there is none."""
from paddle._native import native


def rank():
    return native.job_env()["rank"]


def world():
    return native.job_env()["world"]


def node():
    job = native.job_env()
    return job["node"], job["nodes"]


def local():
    job = native.job_env()
    return job["local_rank"], job["local_world"]
