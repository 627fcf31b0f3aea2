"""What both sets of translations share: marks, dictionaries, samples, and a made-up language."""
import numpy

MARKS = ["<s>", "<e>", "<unk>"]
_WORDS = 60


def ids_of(words, size):
    """{word: id} of the marks and the first words, `size` together."""
    return {word: i for i, word in enumerate((MARKS + [w for w in words if w not in MARKS])[:max(size, len(MARKS))])}


def sample(source, target, source_ids, target_ids):
    """(source between marks, target from its begin, target to its end), as ids."""
    start, end, unknown = (target_ids[mark] for mark in MARKS)
    src = [source_ids.get(w, source_ids["<unk>"]) for w in ["<s>", *source, "<e>"]]
    trg = [target_ids.get(w, unknown) for w in target]
    return src, [start, *trg], [*trg, end]


def made_up(part, count):
    """A word for a word; in the other language the words of a pair change places."""
    rng = numpy.random.RandomState({"train": 1, "test": 2, "val": 3}[part])
    for _ in range(count):
        source = [f"s{w}" for w in rng.randint(0, _WORDS, 2 * rng.randint(2, 5))]
        yield source, [f"t{w[1:]}" for pair in zip(source[1::2], source[::2]) for w in pair]


def made_up_words(letter, size):
    """Those that made_up uses, and as many as a dictionary of this size has: a network may give any of them."""
    return [f"{letter}{i}" for i in range(max(_WORDS, size))]
