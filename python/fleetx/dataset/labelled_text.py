"""Texts with labels, in packs for BertClassifier."""
import collections
import os
import warnings
from typing import Dict, Iterator, List, Optional, Sequence

import numpy

from fleetx.text import Path, WordPieceTokenizer
from paddle._native import native


class LabelledTextLoader:
    """Lines of a label, a tab and a text; iterates over [{name: array}] with src_ids, sent_ids, pos_ids, seq_len, read_pos
    and read_len (the first words; pool="mean": all), seq_first, labels, label_weight, and for means word_share, which makes them
    of the words. Texts stand one after the other in batches of `tokens` tokens, so all have the
    same shapes; those longer than max_length are cut. Every pass of a shuffled loader has another order.

    per_label -- only so many texts of each label, drawn by `seed`: what do few give?
    bad_lines -- those that are not UTF-8, or not a label, a tab and a text: "stop", "skip", "replace" (broken bytes; what cannot be
        repaired is left out)
    """

    def __init__(self, file: Path, tokenizer: WordPieceTokenizer, labels: Sequence[str], tokens: int = 1024,
                 max_length: int = 128, shuffle: bool = True, seed: int = 0,
                 per_label: Optional[int] = None, bad_lines: str = "stop", pool: str = "mean"):
        if per_label is not None and per_label < 1:
            raise native.InvalidArgumentError(f"per_label is {per_label}; must be positive, or None for all texts")
        if tokens < max_length:
            raise native.InvalidArgumentError(f"tokens is {tokens}; must be at least max_length, {max_length}")
        numbers = {label: number for number, label in enumerate(labels)}
        texts: List[str] = []
        self.answers: List[int] = []
        for line, label, text in labelled_lines(file, bad_lines):
            if label not in numbers:
                raise native.InvalidArgumentError(f"{os.fspath(file)}:{line}: the label '{label}' is not one of the model's "
                                                  f"{len(numbers)}: {', '.join(list(numbers)[:5])} ...")
            texts.append(text)
            self.answers.append(numbers[label])
        if per_label is not None:
            chosen = _drawn(self.answers, per_label, seed)
            texts, self.answers = [texts[i] for i in chosen], [self.answers[i] for i in chosen]
        marks = [_mark(tokenizer, mark) for mark in ("[CLS]", "[SEP]", "[PAD]")]
        self._texts = [[marks[0], *words[:max_length - 2], marks[1]] for words in tokenizer.encode_batch(texts)]
        self._pad, self._tokens, self._shuffle, self._seed, self._pass = marks[2], tokens, shuffle, seed, 0
        self._mean = pool == "mean"
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
        shares = numpy.zeros([self._most, self._tokens], "float32")
        at = 0
        for row, i in enumerate(pack):
            length = len(self._texts[i])
            words[0, at:at + length], places[0, at:at + length] = self._texts[i], range(length)
            shares[row, at:at + length] = 1 / length
            lengths[row], firsts[row], labels[row], weights[row] = length, at, self.answers[i], 1
            at += length
        feed = {"src_ids": words, "sent_ids": numpy.zeros_like(words), "pos_ids": places, "seq_len": lengths,
                "labels": labels, "label_weight": weights}
        if self._mean:
            return {**feed, "read_pos": numpy.arange(self._tokens), "read_len": lengths, "seq_first": firsts, "word_share": shares}
        return {**feed, "read_pos": firsts, "read_len": weights[:, 0].astype("int64"), "seq_first": numpy.arange(self._most)}


def _drawn(answers, per_label, seed):
    """Places of `per_label` texts of each label."""
    taken, chosen = collections.Counter(), []
    for i in numpy.random.default_rng(seed).permutation(len(answers)):
        if taken[answers[i]] < per_label:
            taken[answers[i]] += 1
            chosen.append(int(i))
    return chosen


def _mark(tokenizer, mark):
    number = tokenizer.token_to_id(mark)
    if number is None:
        raise native.InvalidArgumentError(f"the vocabulary has no '{mark}', which every text needs; add it as a line of vocab.txt, or "
                                          "give the vocabulary that belongs to the model")
    return number


def labelled_lines(file: Path, bad_lines: str = "stop"):
    """[(line, label, text)]"""
    if bad_lines not in ("stop", "skip", "replace"):
        raise native.InvalidArgumentError(f"bad_lines is {bad_lines!r}; known: stop, skip, replace")
    if not os.path.isfile(file):
        raise native.InvalidArgumentError(f"{os.fspath(file)}: no such file; expected lines of a label, a tab, and a text")
    found, bad = [], []
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                decoded, why = line.decode("utf-8"), ""
            except UnicodeDecodeError as error:
                decoded, why = line.decode("utf-8", "replace"), f"byte {error.start + 1} is not UTF-8"
            label, tab, text = decoded.rstrip("\r\n").partition("\t")
            whole = bool(label and tab and text.strip())
            why = why if whole else why or "expected a label, a tab, and a text"
            if why and bad_lines == "stop":
                raise native.CorruptFileError(f"{os.fspath(file)}:{number}: {why} (bad_lines=skip or bad_lines=replace goes on)")
            if why:
                bad.append(f"{os.fspath(file)}:{number}: {why}")
            if whole and (bad_lines == "replace" or not why):
                found.append((number, label, text))
    if bad:
        warnings.warn(f"{len(bad)} lines left out or repaired; the first: {bad[0]}")
    if not found:
        raise native.CorruptFileError(f"{os.fspath(file)}: no lines")
    return found
