"""HDFS through the command line of a Hadoop that is installed."""
from paddle import _refuse
from paddle.distributed.fleet.utils.fs import HDFSClient  # noqa: F401

multi_download = _refuse.refused("paddle.fluid.contrib.utils.multi_download", "HDFSClient.download, and fleet.split_files")
multi_upload = _refuse.refused("paddle.fluid.contrib.utils.multi_upload", "HDFSClient.upload")
