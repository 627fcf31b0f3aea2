"""Models as static programs, with their data."""
from fleetx.applications.bert import Bert, BertBase, BertLarge
from fleetx.applications.ctr import MultiSlotCTR
from fleetx.applications.deepfm import DeepFM
from fleetx.applications.model import VGG16, Model, Resnet50
from fleetx.applications.trainer import CPUDatasetTrainer, CPUTrainer, MultiGPUTrainer
from fleetx.applications.transformer import Transformer, TransformerBig
from fleetx.applications.wide_deep import WideDeep
from fleetx.applications.word2vec import Word2vec

__all__ = ["Resnet50", "VGG16", "Bert", "BertBase", "BertLarge", "Transformer", "TransformerBig", "MultiSlotCTR", "WideDeep", "DeepFM", "Word2vec", "Model",
           "MultiGPUTrainer", "CPUTrainer", "CPUDatasetTrainer"]

_LATER = ("BERT", "BertHuge", "BertGiant", "Resnet50Mlperf")
_MODELS = "Resnet50, VGG16, Bert, BertBase, BertLarge, Transformer, TransformerBig, MultiSlotCTR, WideDeep, DeepFM and Word2vec"


def __getattr__(name):
    if name in _LATER:
        from paddle._native import native
        raise native.UnsupportedError(f"fleetx.applications.{name} is not there yet; there are {_MODELS}")
    raise AttributeError(f"module 'fleetx.applications' has no '{name}'; there are {_MODELS}")
