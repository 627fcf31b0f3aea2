"""Models as static programs, with their data."""
from fleetx.applications.bert import Bert, BertBase, BertLarge
from fleetx.applications.ctr import MultiSlotCTR
from fleetx.applications.model import VGG16, Model, Resnet50
from fleetx.applications.trainer import CPUDatasetTrainer, CPUTrainer, MultiGPUTrainer

__all__ = ["Resnet50", "VGG16", "MultiSlotCTR", "Bert", "BertBase", "BertLarge", "Model", "MultiGPUTrainer", "CPUTrainer", "CPUDatasetTrainer"]

_LATER = ("BERT", "BertHuge", "BertGiant", "Transformer", "Word2vec", "Resnet50Mlperf")
_THERE = "Resnet50, VGG16, MultiSlotCTR, Bert, BertBase and BertLarge"


def __getattr__(name):
    if name in _LATER:
        from paddle._native import native
        raise native.UnsupportedError(f"fleetx.applications.{name} is not there yet; there are {_THERE}")
    raise AttributeError(f"module 'fleetx.applications' has no '{name}'; there are {_THERE}")
