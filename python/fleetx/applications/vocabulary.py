"""The vocabulary of BERT's data: that of the folder, or one that is learned there."""
import os
from typing import Tuple

from fleetx.text import WordPieceTokenizer, learn_wordpiece
from paddle._native import native


def vocabulary_of(folder: str, size: int, lowercase: bool, bad_lines: str = "stop") -> Tuple[str, WordPieceTokenizer]:
    """(file, tokenizer) for a model of `size` tokens: folder/vocab.txt where it is there, else folder/vocab-<size>.txt (with case:
    vocab-<size>-cased.txt), which is learned from folder/train.txt once: models of other sizes have others."""
    vocab, text = os.path.join(folder, "vocab.txt"), os.path.join(folder, "train.txt")
    if not os.path.exists(vocab):
        vocab = os.path.join(folder, f"vocab-{size}{'' if lowercase else '-cased'}.txt")
        if not os.path.exists(vocab):
            if not os.path.exists(text):
                raise native.InvalidArgumentError(
                    f"{folder}: has no vocab.txt, and no train.txt to learn one from; put BERT's there, or call "
                    "fleetx.text.learn_wordpiece(files, 'vocab.txt', size)")
            partial = f"{vocab}.{os.getpid()}"  # all workers may come here; all learn the same
            learn_wordpiece(text, partial, size=size, lowercase=lowercase, bad_lines=bad_lines)
            os.replace(partial, vocab)
    tokenizer = WordPieceTokenizer(vocab, lowercase=lowercase)
    check_size(tokenizer, size, vocab)
    return vocab, tokenizer


def check_size(tokenizer: WordPieceTokenizer, size: int, source: str) -> None:
    if len(tokenizer) > size:
        raise native.InvalidArgumentError(
            f"{source} has {len(tokenizer)} tokens, but the model {size}; give it vocab_size={len(tokenizer)}")
