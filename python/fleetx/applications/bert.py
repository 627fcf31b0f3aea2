"""BERT's pre-training. The network is built by fleetx/models/bert.cc; here are its inputs, metrics and loaders."""
import os
import shutil
from typing import Dict, List, Optional

import paddle
from fleetx.applications import huggingface
from fleetx.applications.parameters import Parameters
from fleetx.applications.vocabulary import vocabulary_of
from fleetx.dataset.prepared_bert import PreparedBertLoader
from fleetx.dataset.text_dataset import BertLoader
from fleetx.text import Path, WordPieceTokenizer
from paddle import static
from paddle._graph import switch_main_program, switch_startup_program
from paddle._native import native, user_line


def network_options(vocab_size, hidden, layers, heads, max_seq_len, dropout, init_std):
    """As fleetx/models/bert.h has them."""
    if hidden % heads:
        raise native.InvalidArgumentError(f"hidden is {hidden}; must be a multiple of heads, {heads}")
    return dict(vocabulary=vocab_size, hidden=hidden, layers=layers, heads=heads, intermediate=4 * hidden,
                max_positions=max(512, max_seq_len), dropout=dropout, init_std=init_std)


class Bert(Parameters):
    """A BERT of any size in programs of its own, which become the default ones. All samples are padded to max_seq_len,
    which the program knows. `ragged`: batches are of samples of similar length and padded to the longest of them, so that
    short ones cost what they are; pos_ids are fed, too. `packed`: samples stand one after the other in batches of a fixed
    number of tokens, so that nothing is padded, and the last layer computes only what the heads read; attention weights have
    no dropout then.

    inputs -- what is fed: src_ids, sent_ids, input_mask, mask_pos, mask_label, mask_weight, labels (packed: pos_ids, seq_len,
        read_pos, read_len, seq_first and label_weight instead of input_mask)
    loss -- that of hidden words and of next sentences; target -- {"word_loss", "word_acc", "sentence_acc": variable}
    hidden_states -- the output of the last layer (packed: of the places that are read); word_logits, sentence_logits -- of the heads
    checkpoints -- outputs of the layers, for strategy.recompute_configs

    init_std -- standard deviation of weights at the beginning; 0.02 is BERT's
    """

    def __init__(self, vocab_size: int = 30522, hidden: int = 768, layers: int = 12, heads: int = 12,
                 max_seq_len: int = 128, dropout: float = 0.1, ragged: bool = False, packed: bool = False,
                 init_std: float = 0.02):
        if ragged and packed:
            raise native.InvalidArgumentError("a model is either ragged or packed")
        paddle.enable_static()
        self.vocab_size, self.max_seq_len, self.ragged, self.packed = vocab_size, max_seq_len, ragged, packed
        self._options = network_options(vocab_size, hidden, layers, heads, max_seq_len, dropout, init_std)
        self.tokenizer: Optional[WordPieceTokenizer] = None
        self._vocab: Optional[str] = None
        self.main_prog, self.startup_prog = static.Program(), static.Program()
        switch_main_program(self.main_prog)
        switch_startup_program(self.startup_prog)
        length, rows = None if ragged or packed else max_seq_len, 1 if packed else None
        fed = {"src_ids": [rows, length], "sent_ids": [rows, length], "input_mask": [None, 1, 1, length], "mask_pos": [None],
               "mask_label": [None, 1], "mask_weight": [None, 1], "labels": [None, 1]}
        if ragged or packed:
            fed["pos_ids"] = [rows, None]
        if packed:
            del fed["input_mask"]
            fed |= {"seq_len": [None], "read_pos": [None], "read_len": [None], "seq_first": [None], "label_weight": [None, 1]}
        floats = ("input_mask", "mask_weight", "label_weight")
        self.inputs: List[static.Variable] = [
            static.data(name, shape, "float32" if name in floats else "int64") for name, shape in fed.items()]
        file, line = user_line()
        net = native.bert_pretraining(self.main_prog.builder(), [v.name for v in self.inputs], self._options, file, line)
        variable = self.main_prog.global_block().var
        self.loss = variable(net["loss"])
        self.checkpoints: List[str] = list(net["checkpoints"])
        self.word_logits, self.sentence_logits = variable(net["word_logits"]), variable(net["sentence_logits"])
        self.hidden_states = variable(self.checkpoints[-1])
        label, weight, follows = map(variable, ("mask_label", "mask_weight", "labels"))
        found = paddle.cast(paddle.equal(paddle.reshape(paddle.argmax(self.word_logits, axis=-1), [-1, 1]),
                                         label), "float32")
        self.target: Dict[str, static.Variable] = {
            "word_loss": variable(net["word_loss"]),
            "word_acc": paddle.sum(found * weight) / paddle.sum(weight),
            "sentence_acc": self._weighted_acc(follows, variable("label_weight")) if packed else
            paddle.metric.accuracy(paddle.nn.functional.softmax(self.sentence_logits), follows)}

    def _weighted_acc(self, label, weight):
        right = paddle.equal(paddle.reshape(paddle.argmax(self.sentence_logits, axis=-1), [-1, 1]), label)
        return paddle.sum(paddle.cast(right, "float32") * weight) / paddle.sum(weight)

    # ---- what validation makes of it ----
    def samples_of(self, feed) -> float:
        """What a batch's means are over."""
        return float(feed["label_weight"].sum()) if self.packed else len(feed["src_ids"])

    # ---- data ----
    def get_train_dataloader(self, local_path: Path, batch_size: int = 32, lowercase: bool = True, seed: int = 0,
                             short_rate: float = 0.0, bad_lines: str = "stop",
                             long_sentences: str = "replace", tokens: Optional[int] = None,
                             fill: bool = True, mask_rate: float = 0.15) -> BertLoader:
        """Batches of `local_path`/train.txt, one sentence a line and an empty line between documents (or train.jsonl),
        by `local_path`/vocab.txt. Where it is not there, vocab-<vocab_size>.txt is learned from the text. This worker's share.
        fleetx.dataset.local_text() makes such a folder from what is on this machine.

        tokens -- of a batch, instead of batch_size samples (of a packed model: instead of batch_size x max_seq_len tokens)
        fill -- False: a sample has two sentences, whatever their lengths, instead of as many as fit
        mask_rate -- the share of words that are hidden"""
        return self._load(local_path, "train", batch_size, lowercase, seed, short_rate, bad_lines, long_sentences, tokens, fill,
                          mask_rate)

    def get_val_dataloader(self, local_path: Path, batch_size: int = 32, lowercase: bool = True, seed: int = 0,
                           short_rate: float = 0.0, bad_lines: str = "stop",
                           long_sentences: str = "replace", tokens: Optional[int] = None,
                           fill: bool = True, mask_rate: float = 0.15) -> BertLoader:
        """The same of val.txt; all of it on every worker, in order."""
        return self._load(local_path, "val", batch_size, lowercase, seed, short_rate, bad_lines, long_sentences, tokens, fill,
                          mask_rate)

    def load_digital_dataset_from_file(self, data_dir: Path, vocab_path: Path, batch_size: int = 8192, max_seq_len: int = 512,
                                       in_tokens: bool = True) -> PreparedBertLoader:
        """Batches of samples whose words are numbers already (fleetx.dataset.PreparedBertLoader says how their files look).
        batch_size -- tokens; samples with in_tokens=False. Samples of more than max_seq_len words, or of more than the model
        takes, are left out."""
        if self.packed:
            raise native.UnsupportedError("a packed model reads text: get_train_dataloader")
        if max_seq_len > self.max_seq_len:
            print(f"samples of more than {self.max_seq_len} words are left out; {type(self).__name__}(max_seq_len={max_seq_len}) "
                  "takes them", flush=True)
        return PreparedBertLoader(data_dir, vocab_path, [v.name for v in self.inputs], batch_size,
                                  min(max_seq_len, self.max_seq_len), self.vocab_size, in_tokens,
                                  None if self.ragged else self.max_seq_len)

    def _load(self, folder, part, batch_size, lowercase, seed, short_rate, bad_lines, long_sentences, tokens, fill,
              mask_rate):
        folder, train = os.fspath(folder), part == "train"
        lines = os.path.join(folder, f"{part}.jsonl")
        use_lines = os.path.exists(lines)
        self._vocab, tokenizer = vocabulary_of(folder, self.vocab_size, lowercase, bad_lines)
        self.tokenizer = tokenizer
        return _FedLoader([v.name for v in self.inputs], lines if use_lines else os.path.join(folder, f"{part}.txt"),
                          tokenizer, batch_size, self.max_seq_len, format="jsonl" if use_lines else "text",
                          tokens=tokens, short_rate=short_rate, shuffle=train, drop_last=train,
                          multiple=8 if self.ragged else self.max_seq_len, seed=seed, bad_lines=bad_lines,
                          long_sentences=long_sentences, rank=None if train else 0, world=None if train else 1,
                          packed=self.packed, fill=fill, mask_rate=mask_rate)

    # ---- parameters ----
    _family = "text"

    def _layer_width(self):
        return self._options["hidden"]

    def _size_of(self, name, axis, batch, length):
        hidden = name.startswith("mask_") and axis == 0
        return batch * max(1, round(0.15 * length)) if hidden else super()._size_of(name, axis, batch, length)

    def _outputs(self):
        return [self.word_logits, self.sentence_logits]

    @staticmethod
    def of_huggingface(folder: Path, max_seq_len: int = 128, dropout: float = 0.1) -> "Bert":
        """A BERT of the size that the config.json in `folder` tells; load_huggingface then reads the weights."""
        config = huggingface.read_config(folder)
        return Bert(config["vocab_size"], config["hidden_size"], config["num_hidden_layers"],
                    config["num_attention_heads"], max_seq_len, dropout)

    def load_huggingface(self, path: Path) -> None:
        """Reads the weights of Hugging Face's BertForPreTraining or BertModel: a folder with model.safetensors, or such a
        file. Run startup_prog before. A file without heads leaves these as they are, and says so. A config.json beside the file
        must tell of a network like this one."""
        huggingface.check_config(path, self._options)
        values, heads = huggingface.read(path, self._options["layers"])
        if not heads:
            print(f"{os.fspath(path)}: has no heads of pre-training; they stay as they are", flush=True)
        self._set_state(values, os.fspath(path))

    def save_huggingface(self, folder: Path) -> None:
        """Writes model.safetensors and config.json for Hugging Face's BertForPreTraining, and vocab.txt where a loader has
        brought one."""
        size = self._options
        config = {"architectures": ["BertForPreTraining"], "model_type": "bert", "vocab_size": self.vocab_size,
                  "hidden_size": size["hidden"], "num_hidden_layers": size["layers"],
                  "num_attention_heads": size["heads"], "intermediate_size": size["intermediate"], "hidden_act": "gelu",
                  "hidden_dropout_prob": size["dropout"], "attention_probs_dropout_prob": size["dropout"],
                  "max_position_embeddings": size["max_positions"], "type_vocab_size": 2, "layer_norm_eps": 1e-12}
        huggingface.write(folder, self._state_values(), config, size["layers"])
        if self._vocab is not None:
            shutil.copy(self._vocab, os.path.join(os.fspath(folder), "vocab.txt"))


class BertBase(Bert):
    """12 layers of 768, 12 heads: 110 million parameters."""

    def __init__(self, vocab_size: int = 30522, max_seq_len: int = 128, dropout: float = 0.1,
                 ragged: bool = False, packed: bool = False):
        super().__init__(vocab_size, 768, 12, 12, max_seq_len, dropout, ragged, packed)


class BertLarge(Bert):
    """24 layers of 1024, 16 heads: 340 million parameters."""

    def __init__(self, vocab_size: int = 30522, max_seq_len: int = 128, dropout: float = 0.1,
                 ragged: bool = False, packed: bool = False):
        super().__init__(vocab_size, 1024, 24, 16, max_seq_len, dropout, ragged, packed)


class BertHuge(Bert):
    """32 layers of 1280, 16 heads: 670 million parameters."""

    def __init__(self, vocab_size: int = 30522, max_seq_len: int = 128, dropout: float = 0.1,
                 ragged: bool = False, packed: bool = False):
        super().__init__(vocab_size, 1280, 32, 16, max_seq_len, dropout, ragged, packed)


class BertGiant(Bert):
    """60 layers of 6144, 96 heads: 27.4 billion parameters, 110 GB: for many workers that share them (strategy())."""

    def __init__(self, vocab_size: int = 30522, max_seq_len: int = 128, dropout: float = 0.1,
                 ragged: bool = False, packed: bool = False):
        super().__init__(vocab_size, 6144, 60, 96, max_seq_len, dropout, ragged, packed)


class _FedLoader(BertLoader):
    """Without the places of words, which this network knows by itself."""

    def __init__(self, names, *arguments, **options):
        super().__init__(*arguments, **options)
        self._names = names

    def __iter__(self):
        for batch, in super().__iter__():
            yield [{name: batch[name] for name in self._names}]
