"""Models as static programs, with their data."""
from fleetx.applications.ctr import MultiSlotCTR
from fleetx.applications.model import VGG16, Model, Resnet50
from fleetx.applications.trainer import CPUDatasetTrainer, CPUTrainer, MultiGPUTrainer

__all__ = ["Resnet50", "VGG16", "MultiSlotCTR", "Model", "MultiGPUTrainer", "CPUTrainer", "CPUDatasetTrainer"]

_LATER = ("BERT", "Bert", "BertBase", "BertLarge", "BertHuge", "BertGiant", "Transformer", "Word2vec",
          "Resnet50Mlperf")


def __getattr__(name):
    if name in _LATER:
        from paddle._native import native
        raise native.UnsupportedError(f"fleetx.applications.{name} is not there yet; there are Resnet50, VGG16 and MultiSlotCTR")
    raise AttributeError(f"module 'fleetx.applications' has no '{name}'; there are Resnet50, VGG16 and MultiSlotCTR")
