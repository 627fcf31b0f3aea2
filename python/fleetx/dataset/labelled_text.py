"""Texts with labels, in packs for BertClassifier."""
import os
from typing import Dict, Iterator, List, Sequence

import numpy

from fleetx.text import Path, WordPieceTokenizer
from paddle._native import native


class LabelledTextLoader:
    """Lines of a label, a tab and a text; iterates over [{name: array}] with src_ids, sent_ids, pos_ids, seq_len, read_pos
    and read_len (the first words), seq_first, labels and label_weight. Texts stand one after the other in batches of `tokens` tokens, so all have the same shapes;
    those longer than max_length are cut. Every pass of a shuffled loader has another order."""

    def __init__(self, file: Path, tokenizer: WordPieceTokenizer, labels: Sequence[str], tokens: int = 1024,
                 max_length: int = 128, shuffle: bool = True, seed: int = 0):
        numbers = {label: number for number, label in enumerate(labels)}
        texts: List[str] = []
        self.answers: List[int] = []
        for line, label, text in labelled_lines(file):
            if label not in numbers:
                raise native.InvalidArgumentError(f"{os.fspath(file)}:{line}: the label '{label}' is not one of the model's "
                                                  f"{len(numbers)}: {', '.join(list(numbers)[:5])} ...")
            texts.append(text)
            self.answers.append(numbers[label])
        marks = [tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]", "[PAD]")]
        if None in marks or tokens < max_length:
            raise native.InvalidArgumentError(f"tokens is {tokens}; must be at least max_length, {max_length}" if tokens < max_length
                                              else "the vocabulary lacks one of [CLS], [SEP], [PAD]")
        self._texts = [[marks[0], *words[:max_length - 2], marks[1]] for words in tokenizer.encode_batch(texts)]
        self._pad, self._tokens, self._shuffle, self._seed, self._pass = marks[2], tokens, shuffle, seed, 0
        mean = sum(map(len, self._texts)) / len(self._texts)
        self._most = int(1.5 * tokens / mean) + 8  # texts of a batch

    def __len__(self) -> int:
        return len(self._packs(range(len(self._texts))))

    def __call__(self) -> "LabelledTextLoader":
        return self

    def __iter__(self) -> Iterator[List[Dict[str, numpy.ndarray]]]:
        order = range(len(self._texts))
        if self._shuffle:
            order = numpy.random.default_rng([self._seed, self._pass]).permutation(len(self._texts))
        self._pass += 1
        for pack in self._packs(order):
            yield [self._feed(pack)]

    @property
    def samples(self) -> int:
        return len(self._texts)

    def _packs(self, order):
        packs, left = [[]], self._tokens
        for i in order:
            if len(self._texts[i]) > left or len(packs[-1]) == self._most:
                packs.append([])
                left = self._tokens
            packs[-1].append(int(i))
            left -= len(self._texts[i])
        return packs

    def _feed(self, pack):
        words, places = numpy.full([1, self._tokens], self._pad, "int64"), numpy.zeros([1, self._tokens], "int64")
        lengths, firsts = numpy.zeros(self._most, "int64"), numpy.zeros(self._most, "int64")
        labels, weights = numpy.zeros([self._most, 1], "int64"), numpy.zeros([self._most, 1], "float32")
        at = 0
        for row, i in enumerate(pack):
            length = len(self._texts[i])
            words[0, at:at + length], places[0, at:at + length] = self._texts[i], range(length)
            lengths[row], firsts[row], labels[row], weights[row] = length, at, self.answers[i], 1
            at += length
        return {"src_ids": words, "sent_ids": numpy.zeros_like(words), "pos_ids": places, "seq_len": lengths,
                "read_pos": firsts, "read_len": weights[:, 0].astype("int64"), "seq_first": numpy.arange(self._most),
                "labels": labels, "label_weight": weights}


def labelled_lines(file: Path):
    """[(line, label, text)]"""
    found = []
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            label, tab, text = line.rstrip("\n").partition("\t")
            if not (label and tab and text.strip()):
                raise native.CorruptFileError(f"{os.fspath(file)}:{number}: expected a label, a tab, and a text")
            found.append((number, label, text))
    if not found:
        raise native.CorruptFileError(f"{os.fspath(file)}: no lines")
    return found
