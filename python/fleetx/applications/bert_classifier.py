"""BERT with a layer that tells labels of texts: what pre-training is for."""
import os
from typing import Dict, List, Optional, Sequence

import paddle
from fleetx.applications.bert import network_options
from fleetx.applications.parameters import Parameters
from fleetx.applications.vocabulary import check_size, vocabulary_of
from fleetx.dataset.labelled_text import LabelledTextLoader, labelled_lines
from fleetx.text import Path, WordPieceTokenizer
from paddle import static
from paddle._graph import switch_main_program, switch_startup_program
from paddle._native import native, user_line


class BertClassifier(Parameters):
    """A BERT of any size in programs of its own, which become the default ones, and a layer on the mean of its words, or on the
    first one ([CLS]). The parameters that Bert has, too, have the
    same names: load_pretrained() reads them from what its save_params wrote.

    pool -- "mean" or "first"
    inputs -- what is fed: src_ids, sent_ids, pos_ids, seq_len, read_pos, read_len, seq_first, labels, label_weight, and for means
        word_share; texts are packed
    loss -- per text; target -- {"acc": variable}; logits
    checkpoints -- outputs of the layers, for strategy.recompute_configs
    """

    def __init__(self, labels: Sequence[str], vocab_size: int = 30522, hidden: int = 768, layers: int = 12, heads: int = 12,
                 max_seq_len: int = 128, dropout: float = 0.1, init_std: float = 0.02,
                 pool: str = "mean"):
        if len(labels) < 2:
            raise native.InvalidArgumentError(f"labels has {len(labels)} names; there is nothing to tell apart")
        if pool not in ("mean", "first"):
            raise native.InvalidArgumentError(f"pool is {pool!r}; known: mean, first")
        paddle.enable_static()
        self.labels, self.vocab_size, self.max_seq_len = list(labels), vocab_size, max_seq_len
        self._width, self._pool = hidden, pool
        self.main_prog, self.startup_prog = static.Program(), static.Program()
        switch_main_program(self.main_prog)
        switch_startup_program(self.startup_prog)
        fed = {"src_ids": [1, None], "sent_ids": [1, None], "pos_ids": [1, None], "seq_len": [None], "read_pos": [None],
               "read_len": [None], "seq_first": [None], "labels": [None, 1], "label_weight": [None, 1]}
        if pool == "mean":
            fed["word_share"] = [None, None]
        self.inputs: List[static.Variable] = [
            static.data(name, shape, "float32" if name in ("label_weight", "word_share") else "int64") for name, shape in fed.items()]
        file, line = user_line()
        options = network_options(vocab_size, hidden, layers, heads, max_seq_len, dropout, init_std)
        net = native.bert_encoder(self.main_prog.builder(), list(fed), options, file, line)
        variable = self.main_prog.global_block().var
        self.checkpoints: List[str] = list(net["checkpoints"])
        label, weight = variable("labels"), variable("label_weight")
        if pool == "mean":
            text = paddle.matmul(variable("word_share"), paddle.reshape(variable(net["sequence"]), [-1, hidden]))
        else:
            text = variable(net["pooled"])
        text = paddle.nn.functional.dropout(text, dropout)
        # Names of their own: two models in one process have the same parameters.
        self.logits = static.nn.fc(text, len(labels), weight_attr=paddle.ParamAttr(name="label_output.w_0"),
                                   bias_attr=paddle.ParamAttr(name="label_output.b_0"))
        losses = paddle.nn.functional.softmax_with_cross_entropy(self.logits, label)
        self.loss = paddle.sum(losses * weight) / paddle.sum(weight)
        right = paddle.cast(paddle.equal(paddle.reshape(paddle.argmax(self.logits, axis=-1), [-1, 1]), label), "float32")
        self.target: Dict[str, static.Variable] = {"acc": paddle.sum(right * weight) / paddle.sum(weight)}

    def samples_of(self, feed) -> float:
        """What a batch's means are over: texts."""
        return float(feed["label_weight"].sum())

    @staticmethod
    def labels_of(local_path: Path, bad_lines: str = "stop") -> List[str]:
        """The labels in `local_path`/train.tsv, sorted."""
        file = os.path.join(os.fspath(local_path), "train.tsv")
        return sorted({label for _, label, _ in labelled_lines(file, bad_lines)})

    def get_train_dataloader(self, local_path: Path, tokens: int = 1024, lowercase: bool = True, seed: int = 0,
                             tokenizer: Optional[WordPieceTokenizer] = None,
                             per_label: Optional[int] = None, bad_lines: str = "stop") -> LabelledTextLoader:
        """Batches of `local_path`/train.tsv, lines of a label, a tab and a text, by the vocabulary that Bert takes.

        per_label -- only so many texts of each label, drawn by `seed`
        bad_lines -- not UTF-8, or without a label: "stop", "skip" or "replace"."""
        return self._load(local_path, "train", tokens, lowercase, seed, tokenizer, per_label, bad_lines)

    def get_val_dataloader(self, local_path: Path, tokens: int = 1024, lowercase: bool = True,
                           tokenizer: Optional[WordPieceTokenizer] = None, bad_lines: str = "stop") -> LabelledTextLoader:
        """The same of val.tsv, in order."""
        return self._load(local_path, "val", tokens, lowercase, 0, tokenizer, None, bad_lines)

    def _load(self, folder, part, tokens, lowercase, seed, tokenizer, per_label, bad_lines):
        folder = os.fspath(folder)
        if tokenizer is None:
            _, tokenizer = vocabulary_of(folder, self.vocab_size, lowercase)
        check_size(tokenizer, self.vocab_size, "the vocabulary")
        return LabelledTextLoader(os.path.join(folder, f"{part}.tsv"), tokenizer, self.labels, tokens, self.max_seq_len,
                                  shuffle=part == "train", seed=seed, per_label=per_label,
                                  bad_lines=bad_lines, pool=self._pool)

    def load_pretrained(self, path: Path) -> None:
        """Reads the parameters of the encoder from a file that Bert.save_params wrote, whose heads are left out; the layer for
        labels stays as it is. Run startup_prog before."""
        self._load_state(path, [name for name in self.parameter_list() if not name.startswith("label_output")],
                         left_out=lambda name: not name.startswith("encoder_"))

    _family = "text"

    def _layer_width(self):
        return self._width

    def _outputs(self):
        return [self.logits]
