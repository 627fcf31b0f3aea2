"""Models as static programs, with their data."""
from fleetx.applications.bert import Bert, BertBase, BertGiant, BertHuge, BertLarge
from fleetx.applications.bert_classifier import BertClassifier
from fleetx.applications.ctr import MultiSlotCTR
from fleetx.applications.deepfm import DeepFM
from fleetx.applications.model import VGG16, Model, Resnet50, Resnet50Mlperf
from fleetx.applications.trainer import CPUDatasetTrainer, CPUTrainer, MultiGPUTrainer
from fleetx.applications.transformer import Transformer, TransformerBig
from fleetx.applications.wide_deep import WideDeep
from fleetx.applications.word2vec import Word2vec

__all__ = ["Resnet50", "Resnet50Mlperf", "VGG16", "Bert", "BertBase", "BertLarge", "BertHuge", "BertGiant", "BertClassifier",
           "Transformer", "TransformerBig", "MultiSlotCTR", "WideDeep", "DeepFM", "Word2vec", "Model", "MultiGPUTrainer", "CPUTrainer", "CPUDatasetTrainer"]

_MODELS = ("Resnet50, Resnet50Mlperf, VGG16, Bert, BertBase, BertLarge, BertHuge, BertGiant, BertClassifier, Transformer, "
           "TransformerBig, MultiSlotCTR, WideDeep, DeepFM and Word2vec")
_OTHER_NAMES = {"BERT": "Bert"}


def __getattr__(name):
    if name in _OTHER_NAMES:
        return globals()[_OTHER_NAMES[name]]
    raise AttributeError(f"module 'fleetx.applications' has no '{name}'; there are {_MODELS}")
