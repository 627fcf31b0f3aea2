"""Samples for BERT's pre-training whose words are numbers already, as the original prepares them."""
import gzip
import os
from typing import Dict, Iterator, List, Sequence

import numpy

from fleetx import _job
from fleetx.text import Path
from paddle._native import native

_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
_EXCHANGED = 1000  # samples whose second sentences are exchanged among each other
_HIDDEN = 0.15


class PreparedBertLoader:
    """Iterates over [{name: array}], what Executor.run takes as feed; one iteration is one pass, of this worker's share of the
    samples. The files of `data_dir`, plain or *.gz, have a sample a line, in one of two forms:

    words; segments; places; 1 -- for each sample, one whose second sentence is that of another sample is added, with label 0;
        of n words max(1, floor(0.15 n + 1/2)) are hidden, as BertLoader does
    words; 1 or 0 for padding; segments; places of hidden words; hidden words; weights; label -- taken as it is

    names -- of the feeds; length -- what samples are padded to; None: to the longest of a batch, and a multiple of 8
    batch_size -- samples; or, with in_tokens, tokens: samples x padded length, at most
    Samples of more than max_seq_len words are left out.
    """

    _pass = 0

    def __init__(self, data_dir: Path, vocab_path: Path, names: Sequence[str], batch_size: int, max_seq_len: int,
                 vocab_size: int, in_tokens: bool = True, length: int | None = None, seed: int = 0):
        self._folder, self._names, self._length = os.fspath(data_dir), list(names), length
        self._most, self._vocab_size, self._seed = max_seq_len, vocab_size, seed
        self._batch, self._in_tokens = batch_size, in_tokens
        if in_tokens and batch_size < (length or max_seq_len):
            raise native.InvalidArgumentError(f"a batch of {batch_size} tokens has no room for a sample of {length or max_seq_len}; "
                                              "raise batch_size, or set in_tokens=False")
        self._files = [os.path.join(self._folder, name) for name in sorted(os.listdir(self._folder))]
        if not self._files:
            raise native.InvalidArgumentError(f"{self._folder} has no files")
        self._pad, self._begin, self._end, self._mask = _special_ids(vocab_path)

    def __call__(self) -> "PreparedBertLoader":
        return self

    def __iter__(self) -> Iterator[List[Dict[str, numpy.ndarray]]]:
        rng = numpy.random.RandomState([self._seed, self._pass, _job.data_part()[0]])
        self._pass += 1
        batch, longest = [], 0
        for sample in self._samples(rng):
            grown = max(longest, len(sample[0]))
            rows = len(batch) + 1
            if batch and (rows * self._padded(grown) > self._batch if self._in_tokens else rows > self._batch):
                yield [self._feed(batch, longest)]
                batch, grown = [], len(sample[0])
            batch.append(sample)
            longest = grown
        if batch:
            yield [self._feed(batch, longest)]

    # ---- samples: (words, segments, places of hidden words, hidden words, weights, label) ----
    def _samples(self, rng):
        rank, world = _job.data_part()
        follow = []
        for number, (where, fields) in enumerate(self._lines()):
            if number % world != rank:
                continue
            if len(fields) == 7:
                words, real, segments, places, hidden, weights = (_numbers(where, f) for f in fields[:6])
                count = sum(1 for r in real if r)
                if count <= self._most:
                    places, hidden, weights = (values[:len(places)] for values in (places, hidden, weights))
                    yield words[:count], segments[:count], places, hidden, weights, int(fields[6])
                continue
            words, segments = _numbers(where, fields[0]), _numbers(where, fields[1])
            if self._end not in words or len(segments) != len(words):
                raise native.InvalidArgumentError(f"{where}: a sample has a [SEP] (word {self._end}) and a segment for each word")
            if len(words) <= self._most:
                follow.append((words, segments))
            if len(follow) == _EXCHANGED:
                yield from self._with_others(follow, rng)
                follow = []
        yield from self._with_others(follow, rng)

    def _with_others(self, follow, rng):
        """Samples that follow each other, and as many that do not, in random order, with hidden words."""
        both = [(words, segments, 1) for words, segments in follow]
        for (words, _), (others, _) in zip(follow, follow[1:] + follow[:1]) if len(follow) > 1 else ():
            first, second = words[:words.index(self._end) + 1], others[others.index(self._end) + 1:]
            if len(first) + len(second) <= self._most:
                both.append((first + second, [0] * len(first) + [1] * len(second), 0))
        for i in rng.permutation(len(both)):
            words, segments, label = both[i]
            words, places = list(words), [k for k, w in enumerate(words) if w not in (self._begin, self._end)]
            chosen = sorted(rng.permutation(places)[:max(1, int(_HIDDEN * len(places) + 0.5))].tolist())
            hidden = [words[k] for k in chosen]
            for k, way in zip(chosen, rng.rand(len(chosen))):
                words[k] = self._mask if way < 0.8 else int(rng.randint(self._vocab_size)) if way < 0.9 else words[k]
            yield words, segments, chosen, hidden, [1.0] * len(chosen), label

    def _lines(self):
        for file in self._files:
            with (gzip.open(file, "rt") if file.endswith(".gz") else open(file)) as lines:
                for number, line in enumerate(lines, 1):
                    fields = line.strip().split(";")
                    if len(fields) not in (4, 7):
                        raise native.InvalidArgumentError(f"{file}, line {number}: {len(fields)} fields; a sample has 4 or 7, with ; between them")
                    yield f"{file}, line {number}", fields

    # ---- feeds ----
    def _padded(self, longest):
        return self._length or -(-longest // 8) * 8

    def _feed(self, batch, longest):
        rows, length = len(batch), self._padded(longest)
        most = max(max(len(s[2]) for s in batch), int(_HIDDEN * length + 0.5))
        feed = {"src_ids": numpy.full((rows, length), self._pad, "int64"), "sent_ids": numpy.zeros((rows, length), "int64"),
                "input_mask": numpy.full((rows, 1, 1, length), -1e9, "float32"),
                "mask_pos": numpy.zeros((rows, most), "int64"), "mask_label": numpy.zeros((rows, most), "int64"),
                "mask_weight": numpy.zeros((rows, most), "float32"), "labels": numpy.zeros((rows, 1), "int64"),
                "pos_ids": numpy.tile(numpy.arange(length), (rows, 1))}
        for row, (words, segments, places, hidden, weights, label) in enumerate(batch):
            feed["src_ids"][row, :len(words)], feed["sent_ids"][row, :len(words)] = words, segments
            feed["input_mask"][row, 0, 0, :len(words)] = 0
            for name, values in (("mask_pos", places), ("mask_label", hidden), ("mask_weight", weights)):
                feed[name][row, :len(values)] = values
            feed["labels"][row] = label
        feed["mask_pos"] += numpy.arange(rows)[:, None] * length
        feed["mask_pos"] = feed["mask_pos"].reshape(-1)
        feed["mask_label"], feed["mask_weight"] = feed["mask_label"].reshape(-1, 1), feed["mask_weight"].reshape(-1, 1)
        return {name: feed[name] for name in self._names}


def _numbers(where, text):
    try:
        return [float(v) if "." in v else int(v) for v in text.split()]
    except ValueError as error:
        raise native.InvalidArgumentError(f"{where}: {error}") from None


def _special_ids(path):
    """Of vocab.txt: a token a line, its number is that of the line or stands behind a tab."""
    known = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            token, _, given = line.rstrip("\n").partition("\t")
            known[token.strip()] = int(given) if given else number
    missing = [token for token in _SPECIAL if token not in known]
    if missing:
        raise native.InvalidArgumentError(f"{os.fspath(path)} lacks {', '.join(missing)}")
    return [known[token] for token in _SPECIAL]
