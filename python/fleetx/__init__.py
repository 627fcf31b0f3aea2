"""FleetX: models, data and training loops in a few lines, on top of paddle.distributed.fleet.

    import fleetx as X
    configs = X.parse_train_configs()
    model = X.applications.Resnet50()
    loader = model.get_train_dataloader("./data", batch_size=32)
    ...
    X.MultiGPUTrainer().fit(model, loader, epoch=10)
"""
from fleetx import applications, dataset, utils
from fleetx.applications.trainer import MultiGPUTrainer
from fleetx.config import parse_train_configs

__all__ = ["applications", "dataset", "utils", "parse_train_configs", "MultiGPUTrainer"]


def __getattr__(name):
    if name in ("CPUTrainer", "CPUDatasetTrainer"):
        from paddle._native import native
        raise native.UnsupportedError(f"fleetx.{name} trains with parameter servers, which are not there yet; "
                                      "there is MultiGPUTrainer, which runs on CPUs too")
    raise AttributeError(f"module 'fleetx' has no '{name}'; there are {', '.join(__all__)}")
