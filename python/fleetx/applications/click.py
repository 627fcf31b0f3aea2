"""What models of clicks have in common: numbers and ids in, a probability out, data in text files."""
import os
from typing import Dict, List, Optional, Sequence, Union

import paddle
from fleetx.applications.parameters import Parameters
from fleetx.dataset.sample_loader import SampleLoader
from paddle import static
from paddle._graph import switch_main_program, switch_startup_program
from paddle._native import native

Files = Union[str, os.PathLike, Sequence[str]]


class ClickModel(Parameters):
    """A network in programs of its own, which become the default ones.

    inputs -- dense_input, C1 ... C26, label; predict -- probabilities; loss; target -- {"auc": variable}
    auc_states -- counts over all batches, for fleet.metrics.auc
    main_prog, startup_prog; checkpoints -- outputs of the layers, for strategy.recompute_configs

    sparse_feature_dim -- rows of the tables; with servers, ids may be larger
    dense_feature_dim, slot_num -- of own data: how many numbers and how many slots with one id each a sample has
    is_distributed -- insists on tables on the servers, whatever is_sparse would choose
    """

    inputs: List[static.Variable]
    predict: static.Variable
    loss: static.Variable
    target: Dict[str, static.Variable]
    checkpoints: List[str]
    _family = "click"

    def __init__(self, sparse_feature_dim: int, embedding_size: int, hidden: Sequence[int], is_distributed: bool,
                 dense_feature_dim: int, slot_num: int):
        for name, value in (("sparse_feature_dim", sparse_feature_dim), ("embedding_size", embedding_size),
                            ("dense_feature_dim", dense_feature_dim), ("slot_num", slot_num)):
            if int(value) < 1:
                raise native.InvalidArgumentError(f"{type(self).__name__}: {name} must be above 0, got {value}")
        paddle.enable_static()
        self.sparse_feature_dim, self._is_distributed = int(sparse_feature_dim), is_distributed
        self.main_prog, self.startup_prog = static.Program(), static.Program()
        switch_main_program(self.main_prog)
        switch_startup_program(self.startup_prog)
        self._dense = static.data("dense_input", [None, dense_feature_dim], "float32")
        self._ids = [static.data(f"C{i}", [None, 1], "int64") for i in range(1, slot_num + 1)]
        self._label = static.data("label", [None, 1], "int64")
        self.inputs = [self._dense, *self._ids, self._label]
        self.checkpoints = []
        self._network(embedding_size, hidden)
        chances = self.predict
        if chances.shape[1] == 1:
            chances = paddle.concat([1.0 - chances, chances], axis=1)
        auc, _, states = static.auc(chances, self._label)
        self.target = {"auc": auc}
        self.auc_states = states[-2:]

    def _network(self, embedding_size, hidden):
        """Sets self.predict ([N, 2], or [N, 1] for the click alone) and self.loss."""
        raise NotImplementedError

    def _rows(self, table, width, initializer):
        """[N, width] per slot, from one table for all of them."""
        attr = paddle.ParamAttr(name=table, initializer=initializer)
        return [paddle.reshape(static.nn.embedding(ids, [self.sparse_feature_dim, width], is_sparse=True,
                                                   is_distributed=self._is_distributed, param_attr=attr), [-1, width])
                for ids in self._ids]

    def _deep(self, layer, hidden, outputs):
        """Layers of `hidden` widths, then a linear one."""
        for width in hidden:
            layer = static.nn.fc(layer, width, activation="relu", weight_attr=_scaled(layer))
            self.checkpoints.append(layer.name)
        return static.nn.fc(layer, outputs, weight_attr=_scaled(layer))

    def _learn_from(self, logit):
        """The click's logit, [N, 1]."""
        self.predict = paddle.nn.functional.sigmoid(logit)
        self.loss = paddle.nn.functional.binary_cross_entropy_with_logits(logit, paddle.cast(self._label, "float32"))

    def _outputs(self):
        return [self.predict]

    # ---- data ----
    def load_criteo_from_file(self, train_files_path: Files, sparse_feature_dim: Optional[int] = None,
                              batch_size: int = 1000, shuffle: bool = True, thread_num: int = 1,
                              on_damaged: str = "raise") -> SampleLoader:
        """Batches of lines `label, 13 numbers, 26 words`, separated by tabs: a file, a folder of files or a list. Words
        become ids by a hash modulo `sparse_feature_dim`, by default the model's.

        shuffle -- another order in every pass, among every 100 batches; on_damaged -- "raise" or "skip" a line
        """
        return SampleLoader(train_files_path, self.inputs, batch_size, shuffle, "criteo",
                            sparse_feature_dim or self.sparse_feature_dim, thread_num, on_damaged)

    def load_multislot_from_file(self, train_files_path: Files, batch_size: int = 1000, shuffle: bool = True,
                                 thread_num: int = 1, on_damaged: str = "raise") -> SampleLoader:
        """The same of MultiSlot lines: for dense_input, C1, ..., label how many values, and the values."""
        return SampleLoader(train_files_path, self.inputs, batch_size, shuffle, "multi_slot", None, thread_num, on_damaged)


def _scaled(layer):
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Normal(std=layer.shape[1] ** -0.5))
