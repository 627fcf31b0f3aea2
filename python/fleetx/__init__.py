"""FleetX: models, data and training loops in a few lines, on top of paddle.distributed.fleet.

    import fleetx as X
    configs = X.parse_train_configs()
    model = X.applications.Resnet50()
    loader = model.get_train_dataloader("./data", batch_size=32)
    ...
    X.MultiGPUTrainer().fit(model, loader, epoch=10)
"""
from fleetx import applications, dataset, text, utils
from fleetx.applications.trainer import CPUDatasetTrainer, CPUTrainer, MultiGPUTrainer
from fleetx.config import parse_train_configs

__all__ = ["applications", "dataset", "text", "utils", "parse_train_configs", "MultiGPUTrainer", "CPUTrainer", "CPUDatasetTrainer"]


def __getattr__(name):
    raise AttributeError(f"module 'fleetx' has no '{name}'; there are {', '.join(__all__)}")
