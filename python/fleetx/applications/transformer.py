"""Translation by the Transformer. The network is built by fleetx/models/transformer.cc, the search for translations is
fleetx/train/translator.cc; here are inputs, metrics and loaders."""
import math
import os
from typing import Dict, List, Optional, Sequence, Union

import paddle
from fleetx.applications.parameters import Parameters
from fleetx.dataset.text_dataset import TranslationLoader
from fleetx.text import BPETokenizer, Path, bleu, learn_bpe
from paddle import static
from paddle._graph import switch_main_program, switch_startup_program
from paddle._native import native, user_line


class Transformer(Parameters):
    """A Transformer in programs of its own, which become the default ones; `size` is "base", "big", or "small", for
    tasks of a minute. Arguments that are given replace those of the size.

    packed -- pairs stand one after the other in batches of fixed numbers of tokens, so that nothing is padded
    inputs -- what is fed: src_word, src_pos, src_mask, trg_word, trg_pos, lbl_word, lbl_weight (packed: src_len and trg_len
        instead of src_mask)
    loss -- per word, with smoothed labels; target -- {"token_loss", "token_acc": variable}, per word; validation adds
        perplexity, e to the power of token_loss
    checkpoints -- outputs of the layers, for strategy.recompute_configs
    tokenizer, target_tokenizer -- of the last loader, for translate()
    """

    SIZES = {"small": dict(hidden=128, layers=2, heads=4, intermediate=512),
             "base": dict(hidden=512, layers=6, heads=8, intermediate=2048),
             "big": dict(hidden=1024, layers=6, heads=16, intermediate=4096)}

    def __init__(self, size: str = "base", vocab_size: int = 32000, target_vocab_size: Optional[int] = None,
                 hidden: Optional[int] = None, layers: Optional[int] = None, heads: Optional[int] = None,
                 intermediate: Optional[int] = None, dropout: Optional[float] = None, label_smoothing: float = 0.1,
                 max_length: int = 256, packed: bool = False):
        if size not in self.SIZES:
            raise native.InvalidArgumentError(f"size is {size!r}; known: {', '.join(self.SIZES)}")
        given = dict(hidden=hidden, layers=layers, heads=heads, intermediate=intermediate)
        sizes = {key: self.SIZES[size][key] if value is None else value for key, value in given.items()}
        self.max_length, self.packed = max_length, packed
        self.vocab_size, self.target_vocab_size = vocab_size, target_vocab_size or vocab_size
        self._options = dict(source_vocabulary=vocab_size, target_vocabulary=self.target_vocab_size,
                             shared_words=target_vocab_size is None, label_smoothing=label_smoothing,
                             dropout=(0.3 if size == "big" else 0.1) if dropout is None else dropout, **sizes)
        self.tokenizer: Optional[BPETokenizer] = None
        self.target_tokenizer: Optional[BPETokenizer] = None
        self._translators = {}
        paddle.enable_static()
        self.main_prog, self.startup_prog = static.Program(), static.Program()
        switch_main_program(self.main_prog)
        switch_startup_program(self.startup_prog)
        rows = 1 if packed else None
        fed = {"src_word": [rows, None], "src_pos": [rows, None], "src_mask": [None, 1, 1, None], "trg_word": [rows, None],
               "trg_pos": [rows, None], "lbl_word": [rows, None, 1], "lbl_weight": [rows, None, 1]}
        if packed:
            del fed["src_mask"]
            fed |= {"src_len": [None], "trg_len": [None]}
        self.inputs: List[static.Variable] = [
            static.data(name, shape, "float32" if name in ("src_mask", "lbl_weight") else "int64")
            for name, shape in fed.items()]
        net = native.transformer(self.main_prog.builder(), [v.name for v in self.inputs], self._options, *user_line())
        variable = self.main_prog.global_block().var
        self.loss, self.logits = variable(net["loss"]), variable(net["logits"])
        self.checkpoints: List[str] = list(net["checkpoints"])
        label, weight = variable("lbl_word"), variable("lbl_weight")
        found = paddle.cast(paddle.equal(paddle.unsqueeze(paddle.argmax(self.logits, axis=-1), [2]), label), "float32")
        self.target: Dict[str, static.Variable] = {
            "token_loss": variable(net["token_loss"]),
            "token_acc": paddle.sum(found * weight) / paddle.sum(weight)}

    # ---- what validation makes of it ----
    def samples_of(self, feed) -> float:
        """What a batch's means are over: words."""
        return float(feed["lbl_weight"].sum())

    def summarize(self, means: Dict[str, float]) -> Dict[str, float]:
        """Figures that follow from means over all words."""
        return {**means, "perplexity": math.exp(min(means["token_loss"], 700.0))} if "token_loss" in means else means

    # ---- data ----
    def get_train_dataloader(self, local_path: Path, tokens: int = 2048, batch_size: Optional[int] = None,
                             merges: Optional[int] = None, seed: int = 0, bad_lines: str = "stop",
                             long_lines: str = "skip") -> TranslationLoader:
        """Batches of `local_path`/train.tsv, lines of source, a tab and target (or of train.src and train.trg), by
        bpe.codes and bpe.vocab, which are learned from the text of both where they are not there (`merges`: of pairs, as
        many as the vocabulary has room for). Pairs of similar length together; this worker's share.
        fleetx.dataset.local_names() makes such a folder from what is on this machine."""
        return self._load(local_path, "train", tokens, batch_size, merges, seed, bad_lines, long_lines)

    def get_val_dataloader(self, local_path: Path, tokens: int = 2048, batch_size: Optional[int] = None,
                           bad_lines: str = "stop", long_lines: str = "skip") -> TranslationLoader:
        """The same of val.tsv; all of it on every worker."""
        return self._load(local_path, "val", tokens, batch_size, None, 0, bad_lines, long_lines)

    def load_translation_from_file(self, source: Path, target: Optional[Path], tokenizer: BPETokenizer,
                                   target_tokenizer: Optional[BPETokenizer] = None, phase: str = "train",
                                   tokens: int = 2048, batch_size: Optional[int] = None, seed: int = 0,
                                   bad_lines: str = "stop", long_lines: str = "skip") -> TranslationLoader:
        """Batches of two files whose lines belong together; without `target`, of lines with a tab between the two."""
        if phase not in ("train", "val", "test"):
            raise native.InvalidArgumentError(f"phase is {phase!r}; known: train, val, test")
        into = target_tokenizer or tokenizer
        for side, name, size in ((tokenizer, "vocab_size", self.vocab_size),
                                 (into, "target_vocab_size", self.target_vocab_size)):
            if len(side) > size:
                raise native.InvalidArgumentError(
                    f"the vocabulary has {len(side)} tokens, but the model {size}; give it {name}={len(side)}")
        self.tokenizer, self.target_tokenizer = tokenizer, into
        self._translators.clear()  # they know the marks of the tokenizers
        train = phase == "train"
        # Sorted in either phase, so that little is padded; validation has the same order every time.
        return TranslationLoader(source, target, tokenizer, into, tokens=tokens, batch_size=batch_size,
                                 max_length=self.max_length, shuffle=True, multiple=1, seed=seed, bad_lines=bad_lines,
                                 long_lines=long_lines, rank=None if train else 0, world=None if train else 1,
                                 packed=self.packed)

    def load_wmt16_dataset_from_file(self, src_vocab_fpath: Path, trg_vocab_fpath: Path, train_file_pattern: str,
                                     batch_size: int = 2048, shuffle: bool = True) -> TranslationLoader:
        """Of the original; its text is in pieces already, and this loader makes them itself."""
        raise native.UnsupportedError(
            "load_wmt16_dataset_from_file: text that is cut in pieces already is not read; join them (remove every \"@@ \"), and "
            "use get_train_dataloader(folder) with train.tsv, bpe.codes and bpe.vocab, or load_translation_from_file")

    def _load(self, folder, part, tokens, batch_size, merges, seed, bad_lines, long_lines):
        folder = os.fspath(folder)
        source, target = _pair_of(folder, part)
        return self.load_translation_from_file(source, target, self._tokenizer(folder, merges, bad_lines), None, part,
                                               tokens, batch_size, seed, bad_lines, long_lines)

    def _tokenizer(self, folder, merges, bad_lines):
        codes, vocab = os.path.join(folder, "bpe.codes"), os.path.join(folder, "bpe.vocab")
        if not os.path.exists(vocab):
            source, target = _pair_of(folder, "train")
            partial = f".{os.getpid()}"  # all workers may come here; all learn the same
            # Every merge makes one token at most; the characters themselves need room, too.
            learn_bpe([source] if target is None else [source, target], codes + partial, vocab + partial,
                      merges=self.vocab_size * 3 // 4 if merges is None else merges, bad_lines=bad_lines, tabs=target is None)
            os.replace(codes + partial, codes)
            os.replace(vocab + partial, vocab)
        return BPETokenizer(codes, vocab)

    # ---- translations ----
    def translate(self, texts: Union[str, Sequence[str]], beams: int = 4, length_penalty: float = 0.6,
                  max_length: Optional[int] = None, batch_size: int = 64) -> Union[str, List[str]]:
        """The best translations of these texts by the parameters as they are now. beams=1: greedy. Of several
        translations the one with the highest sum of log probabilities / ((5 + length) / 6)^length_penalty is taken."""
        if self.tokenizer is None or self.target_tokenizer is None:
            raise native.InvalidArgumentError("translate: make a loader first, it brings the tokenizers")
        alone = isinstance(texts, str)
        for text in [texts] if alone else texts:
            if not isinstance(text, str):
                raise native.InvalidArgumentError(f"translate: expected a str or a list of them, got {text!r} of a {type(texts).__name__}")
        found = self._translator().translate([self.tokenizer.encode(text) for text in ([texts] if alone else texts)],
                                             beams=beams, length_penalty=length_penalty,
                                             max_length=max_length or self.max_length, batch=batch_size)
        lines = [self.target_tokenizer.decode(words) for words, _ in found]
        return lines[0] if alone else lines

    def bleu(self, local_path: Path, part: str = "val", beams: int = 4, unit: str = "word",
             most: Optional[int] = None, bad_lines: str = "stop") -> float:
        """BLEU of translations of a folder's pairs (the first `most`); see fleetx.text.bleu for `unit`. `bad_lines` is that of the
        loaders; "replace" leaves out, too."""
        pairs = read_pairs(*_pair_of(os.fspath(local_path), part), bad_lines)[:most]
        return bleu(self.translate([source for source, _ in pairs], beams=beams), [target for _, target in pairs], unit)

    def _translator(self):
        scope = static.global_scope()
        if id(scope) not in self._translators:
            self._translators.clear()  # one is enough, and a scope must stay while its number is known
            end = self.tokenizer.token_to_id("<e>")
            into = [self.target_tokenizer.token_to_id(mark) for mark in ("<s>", "<e>")]
            self._translators[id(scope)] = (native.Translator(self._options, scope.native, source_end=end,
                                                              target_begin=into[0], target_end=into[1],
                                                              target_words=len(self.target_tokenizer)), scope)
        return self._translators[id(scope)][0]

    _family = "text"

    def _layer_width(self):
        return self._options["hidden"]

    def _outputs(self):
        return [self.logits]


class TransformerBig(Transformer):
    """6 + 6 layers of 1024, 16 heads: 176 million parameters besides the vocabulary's."""

    def __init__(self, vocab_size: int = 32000, target_vocab_size: Optional[int] = None, dropout: float = 0.3,
                 label_smoothing: float = 0.1, max_length: int = 256, packed: bool = False):
        super().__init__("big", vocab_size, target_vocab_size, dropout=dropout, label_smoothing=label_smoothing,
                         max_length=max_length, packed=packed)


def _pair_of(folder, part):
    """(file, None) for lines with tabs, or the two files of a part."""
    one = os.path.join(folder, f"{part}.tsv")
    two = [os.path.join(folder, f"{part}.{side}") for side in ("src", "trg")]
    if os.path.exists(two[0]) and not os.path.exists(one):
        return two[0], two[1]
    if not os.path.exists(one):
        raise native.InvalidArgumentError(f"{folder}: has neither {part}.tsv (source, a tab, target) nor {part}.src and {part}.trg")
    return one, None


def read_pairs(source: Path, target: Optional[Path] = None, bad_lines: str = "stop") -> List[Sequence[str]]:
    """[(source, target)] of the files. A pair that is not UTF-8 or lacks a side is an error, or left out ("skip", "replace")."""
    with open(source, "rb") as file:
        lines = [line.rstrip(b"\r\n") for line in file]
    if target is not None:
        with open(target, "rb") as file:
            lines = [b"\t".join(pair) for pair in zip(lines, (line.rstrip(b"\r\n") for line in file))]
    pairs = []
    for number, line in enumerate(lines, 1):
        try:
            sides = line.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            sides = []
        if len(sides) == 2 and all(map(str.strip, sides)):
            pairs.append(tuple(sides))
        elif bad_lines == "stop":
            raise native.CorruptFileError(f"{os.fspath(source)}:{number}: expected source, a tab, and target, as UTF-8 "
                                          "(bad_lines=skip goes on)")
    return pairs
