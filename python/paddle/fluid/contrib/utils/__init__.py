"""Files in HDFS, by their module in 1.x."""
from paddle.fluid.contrib.utils import hdfs_utils  # noqa: F401
from paddle.fluid.contrib.utils.hdfs_utils import HDFSClient, multi_download, multi_upload  # noqa: F401
