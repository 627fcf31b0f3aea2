"""Click prediction from numbers and ids: CTR-DNN, as the job of recommenders."""
import glob
import os
from typing import List, Sequence, Union

import paddle
from fleetx.dataset.criteo import CriteoLoader
from paddle import static
from paddle._graph import switch_main_program, switch_startup_program


class MultiSlotCTR:
    """13 numbers and 26 ids per sample; one table for all slots, three layers of 400, two classes.

    inputs -- dense_input, C1 ... C26, label; loss; target -- {"auc": variable}
    main_prog, startup_prog -- of its own, which become the default ones
    """

    def __init__(self, sparse_feature_dim: int = 1000001, embedding_size: int = 10, hidden: Sequence[int] = (400, 400, 400),
                 is_distributed: bool = False):
        paddle.enable_static()
        self.sparse_feature_dim = int(sparse_feature_dim)
        self.main_prog, self.startup_prog = static.Program(), static.Program()
        switch_main_program(self.main_prog)
        switch_startup_program(self.startup_prog)
        dense = static.data("dense_input", [None, 13], "float32")
        ids = [static.data(f"C{i}", [None, 1], "int64") for i in range(1, 27)]
        label = static.data("label", [None, 1], "int64")
        self.inputs = [dense, *ids, label]
        table = paddle.ParamAttr(name="SparseFeatFactors", initializer=paddle.nn.initializer.Uniform(-0.01, 0.01))
        rows = [paddle.reshape(static.nn.embedding(i, [self.sparse_feature_dim, embedding_size], is_sparse=True,
                                                   is_distributed=is_distributed, param_attr=table),
                               [-1, embedding_size]) for i in ids]
        layer = paddle.concat([*rows, dense], axis=1)
        self.checkpoints = []
        for width in hidden:
            spread = paddle.nn.initializer.Normal(std=layer.shape[1] ** -0.5)
            layer = static.nn.fc(layer, width, activation="relu", weight_attr=paddle.ParamAttr(initializer=spread))
            self.checkpoints.append(layer.name)
        logits = static.nn.fc(layer, 2, weight_attr=paddle.ParamAttr(
            initializer=paddle.nn.initializer.Normal(std=layer.shape[1] ** -0.5)))
        self.predict = paddle.nn.functional.softmax(logits)
        self.loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
        auc, _, states = static.auc(self.predict, label)
        self.target = {"auc": auc}
        self.auc_states = states[-2:]  # counts over all batches, for fleet.metrics.auc

    def load_criteo_from_file(self, path: Union[str, os.PathLike, Sequence[str]], sparse_feature_dim: int = 0,
                              batch_size: int = 1000, shuffle: bool = False) -> CriteoLoader:
        """Batches of lines `label, 13 numbers, 26 words`, separated by tabs: a file, a folder of files or a list; a
        worker reads its share of the files. Words become ids by a hash modulo `sparse_feature_dim`."""
        return CriteoLoader(_files(path), [v.name for v in self.inputs], sparse_feature_dim or self.sparse_feature_dim,
                            batch_size, shuffle)

    def parameter_list(self) -> List[str]:
        """Names of the parameters."""
        return [p.name for p in self.main_prog.all_parameters()]


def _files(path):
    if isinstance(path, (list, tuple)):
        return [os.fspath(p) for p in path]
    path = os.fspath(path)
    return sorted(f for f in glob.glob(os.path.join(path, "*")) if os.path.isfile(f)) if os.path.isdir(path) else [path]
