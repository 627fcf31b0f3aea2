"""HDFS through the command line of a Hadoop that is installed."""
from paddle import _refuse
from paddle.distributed.fleet.utils.fs import HDFSClient  # noqa: F401

multi_download = _refuse.refused("paddle.fluid.contrib.utils.multi_download", "the command hdfs dfs -get, and fleet.split_files")
multi_upload = _refuse.refused("paddle.fluid.contrib.utils.multi_upload", "the command hdfs dfs -put")
