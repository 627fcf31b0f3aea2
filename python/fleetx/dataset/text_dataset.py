"""Batches of text, made in C++ (fleetx/data)."""
import functools
import os
from typing import Dict, Iterator, List, Optional, Sequence, Union

import numpy

from fleetx import _job
from fleetx.text import BPETokenizer, Path, WordPieceTokenizer, native_of
from paddle._native import native


class TextLoader:
    """Iterates over [{name: array}], what Executor.run takes as feed; one iteration is one pass. Passes differ, but are
    the same in every run and for any number of workers: worker r of n takes batches r, r + n, ... of one list."""

    _pass = 0
    _made = None  # (part of the data, native.TextBatches)

    def __init__(self, make, rank, world):
        """`make`: of native.TextBatches of a rank and world; `rank`, `world`: None for the part of this worker."""
        self._make, self._rank, self._world = make, rank, world
        self._native  # errors now

    @property
    def _native(self):
        """Made again where the strategy, which may be known later, says that workers share a part."""
        rank, world = _job.data_part()
        part = rank if self._rank is None else self._rank, world if self._world is None else self._world
        if self._made is None or self._made[0] != part:
            self._made = part, self._make(rank=part[0], world=part[1])
        return self._made[1]

    def __len__(self) -> int:
        """Batches of a pass on this worker; of BERT's pairs the next pass may have a few more or less."""
        return self._native.batches

    def __call__(self) -> "TextLoader":
        return self

    def __iter__(self) -> Iterator[List[Dict[str, numpy.ndarray]]]:
        batches = self._native
        batches.begin_pass(self._pass)
        self._pass += 1
        while (feed := batches.next()) is not None:
            yield [feed]

    @property
    def samples(self) -> int:
        """Of a pass, of all workers."""
        return self._native.samples

    @property
    def padding(self) -> float:
        """The share of padding in the tokens of a pass."""
        return self._native.padding


def _sizes(batch_size, tokens, shuffle, drop_last, multiple, seed, packed):
    return dict(packed=packed, batch=0 if tokens else batch_size, tokens=tokens or 0, multiple=multiple, shuffle=shuffle,
                drop_last=drop_last, seed=seed)


class BertLoader(TextLoader):
    """Samples for BERT's pre-training: hidden words and next sentences. The feeds are src_ids, pos_ids, sent_ids,
    input_mask, mask_pos, mask_label, mask_weight and labels (docs/data.md).

    files -- text with a sentence a line and an empty line between documents, or (format="jsonl") JSON lines with a
        document each in `field`
    batch_size -- samples; or tokens -- samples x padded length of a batch, at most
    packed -- samples stand one after the other in batches of `tokens` tokens (or batch_size x max_length): next to nothing
        is padded, and all batches have the same shapes. input_mask gives way to seq_len, read_pos, read_len, seq_first and
        label_weight
    fill -- False: a sample has two sentences, whatever their lengths
    bad_lines -- text that is not UTF-8, lines that are no JSON: "stop", "skip", "replace"
    long_sentences -- sentences that are longer than a sample: "stop", "skip", "replace" (cut)
    """

    def __init__(self, files: Union[Path, Sequence[Path]], tokenizer: WordPieceTokenizer, batch_size: int = 32,
                 max_length: int = 128, tokens: Optional[int] = None, format: str = "text", field: str = "text",
                 mask_rate: float = 0.15, short_rate: float = 0.1, shuffle: bool = True, drop_last: bool = True,
                 multiple: int = 8, seed: int = 0, bad_lines: str = "stop", long_sentences: str = "replace",
                 rank: Optional[int] = None, world: Optional[int] = None, packed: bool = False, fill: bool = True):
        if packed and not tokens:
            tokens = batch_size * max_length
        files = [files] if isinstance(files, (str, os.PathLike)) else files
        self.corpus = native.TextCorpus(native_of(tokenizer), files=[os.fspath(file) for file in files], format=format,
                                        field=field, max_tokens=max_length - 3, bad_lines=bad_lines,
                                        long_sentences=long_sentences)
        sizes = _sizes(batch_size, tokens, shuffle, drop_last, multiple, seed, packed)
        super().__init__(functools.partial(native.BertBatches, self.corpus, tokenizer._native, max_length=max_length,
                                           mask_rate=mask_rate, short_rate=short_rate, fill=fill, **sizes), rank, world)


class TranslationLoader(TextLoader):
    """Pairs of lines in two languages. The feeds are src_word, src_pos, src_mask, trg_word, trg_pos, lbl_word and
    lbl_weight (docs/data.md).

    source, target -- files whose lines belong together; without a target, lines of source, a tab and target
    tokens -- pairs x padded length of a batch, at most; or batch_size -- pairs
    packed -- pairs stand one after the other; `tokens` is what a batch has of the language that has more of them. src_mask
        gives way to src_len and trg_len
    bad_lines -- not UTF-8, or a side is empty; long_lines -- "stop", "skip", "replace" (cut)
    """

    def __init__(self, source: Path, target: Optional[Path], tokenizer: BPETokenizer,
                 target_tokenizer: Optional[BPETokenizer] = None, tokens: int = 2048, batch_size: Optional[int] = None,
                 max_length: int = 256, shuffle: bool = True, drop_last: bool = False, multiple: int = 8, seed: int = 0,
                 bad_lines: str = "stop", long_lines: str = "skip", rank: Optional[int] = None,
                 world: Optional[int] = None, packed: bool = False):
        into = target_tokenizer or tokenizer
        self.pairs = native.TranslationPairs(native_of(tokenizer), native_of(into), source_file=os.fspath(source),
                                             target_file=os.fspath(target or ""), max_length=max_length,
                                             bad_lines=bad_lines, long_lines=long_lines)
        sizes = _sizes(batch_size, None if batch_size else tokens, shuffle, drop_last, multiple, seed, packed)
        super().__init__(functools.partial(native.TranslationBatches, self.pairs, tokenizer._native, into._native, **sizes),
                         rank, world)
