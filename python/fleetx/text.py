"""Tokenizers: WordPiece of BERT and byte pair encoding of subword-nmt. The work is done in C++ (fleetx/data).

    X.text.learn_wordpiece(["book.txt"], "vocab.txt", size=8000)
    tokenizer = X.text.WordPieceTokenizer("vocab.txt")
    tokenizer.encode("Don't stop!")
"""
import os
from typing import List, Optional, Sequence, Union

from paddle._native import native

Path = Union[str, os.PathLike]


class Tokenizer:
    """What both have in common: numbers of tokens from text, and back. Text in threads at once is fine."""

    _native: "native.Tokenizer"

    def encode(self, text: str) -> List[int]:
        """The numbers of a text's tokens, without any that mark its begin or end."""
        return self._native.encode(text)

    def encode_batch(self, texts: Sequence[str]) -> List[List[int]]:
        return self._native.encode_all(list(texts))

    def tokenize(self, text: str) -> List[str]:
        return [self._native.token(number) for number in self._native.encode(text)]

    def decode(self, tokens: Sequence[int]) -> str:
        return self._native.decode(list(tokens))

    def token_to_id(self, token: str) -> Optional[int]:
        number = self._native.find(token)
        return None if number < 0 else number

    def id_to_token(self, number: int) -> str:
        return self._native.token(number)

    @property
    def vocabulary(self) -> List[str]:
        return self._native.tokens

    def __len__(self) -> int:
        return self._native.size


class WordPieceTokenizer(Tokenizer):
    """BERT's, with its vocab.txt. `strip_accents` is that of `lowercase` where it is not given."""

    def __init__(self, vocab: Path, lowercase: bool = True, strip_accents: Optional[bool] = None):
        self._native = native.WordPiece(os.fspath(vocab), lowercase, lowercase if strip_accents is None else strip_accents)


class BPETokenizer(Tokenizer):
    """That of subword-nmt, with its codes and its vocabulary; tokens of a count below `min_count` are split again.
    Without a vocabulary there is only segment()."""

    def __init__(self, codes: Path, vocab: Optional[Path] = None, min_count: int = 0):
        self._native = native.Bpe(os.fspath(codes), os.fspath(vocab or ""), min_count)

    def segment(self, line: str) -> str:
        """The pieces of a line, "@@" after those that are not the last of a word: "low@@ est"."""
        return self._native.segment(line)


def _list(files):
    return [os.fspath(files)] if isinstance(files, (str, os.PathLike)) else [os.fspath(file) for file in files]


def native_of(tokenizer: Tokenizer) -> "native.Tokenizer":
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"tokenizer is {tokenizer!r}: expected a WordPieceTokenizer or BPETokenizer of fleetx.text, which reads the "
                        "file of a vocabulary")
    return tokenizer._native


def learn_wordpiece(files: Union[Path, Sequence[Path]], vocab: Path, size: int = 30000, min_count: int = 2,
                    alphabet: int = 1000, lowercase: bool = True, strip_accents: Optional[bool] = None,
                    bad_lines: str = "stop") -> int:
    """Writes a vocab.txt of at most `size` tokens of these texts and returns how many it has.

    alphabet -- characters that count, the most frequent ones; bad_lines -- "stop", "skip" or "replace"
    """
    return native.learn_wordpiece(files=_list(files), out=os.fspath(vocab), size=size, min_count=min_count,
                                  alphabet=alphabet, lowercase=lowercase,
                                  strip_accents=lowercase if strip_accents is None else strip_accents,
                                  bad_lines=bad_lines)


def bleu(translations: Sequence[str], references: Sequence[str], unit: str = "word") -> float:
    """BLEU of a corpus, 0 to 100: runs of up to four words (separated by spaces) that are also in the reference, with a
    penalty for short translations. unit="char": of characters, for names and languages without spaces."""
    if unit not in ("word", "char"):
        raise native.InvalidArgumentError(f"unit is {unit!r}; known: word, char")
    split = str.split if unit == "word" else list
    return native.bleu([split(line) for line in translations], [split(line) for line in references])


def learn_bpe(files: Union[Path, Sequence[Path]], codes: Path, vocab: Path, merges: int = 32000, min_count: int = 2,
              bad_lines: str = "stop", tabs: bool = False) -> int:
    """Writes the files of `subword-nmt learn-bpe` and `get-vocab` for these texts; returns the number of merges. `tabs`: a tab is a
    space, as in files of pairs."""
    return native.learn_bpe(files=_list(files), codes=os.fspath(codes), vocab=os.fspath(vocab), merges=merges,
                            min_count=min_count, bad_lines=bad_lines, tabs=tabs)
