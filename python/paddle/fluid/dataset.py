"""Under the name of 1.x."""
from paddle.distributed.fleet.dataset import DatasetFactory, InMemoryDataset, QueueDataset  # noqa: F401
