"""Made-up data to try models of clicks and words out. Written once, into the user's cache folder."""
import os
import random
import shutil
import tempfile

from paddle._native import native

NUMBERS, SLOTS = 13, 26


def _made_once(name, write):
    """A folder that write(folder) fills. Several processes may want it at the same time: the first to be done counts."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fleetx")
    folder = os.path.join(cache, name)
    if not os.path.isdir(folder):
        os.makedirs(cache, exist_ok=True)
        making = tempfile.mkdtemp(prefix=name + ".", dir=cache)
        write(making)
        try:
            os.rename(making, folder)
        except OSError:
            shutil.rmtree(making)
            if not os.path.isdir(folder):
                raise
    return folder


def generated_clicks(files: int = 4, lines: int = 2500, val_lines: int = 2500, words: int = 10,
                     data_format: str = "criteo", seed: int = 0) -> str:
    """Folder with `train` (files part-0, ...) and `val` (one file): lines of the Criteo data, or "multi_slot". In every slot
    some words bring clicks; two pairs of slots bring them where their words fit together, which a linear model cannot see."""
    if data_format not in ("criteo", "multi_slot"):
        raise native.InvalidArgumentError(f"generated_clicks: data_format is {data_format!r}; known: 'criteo', 'multi_slot'")
    print_line = _criteo if data_format == "criteo" else lambda *sample: _multi_slot(*sample, words)

    def write(folder):
        draw = random.Random(seed)
        liked = [[draw.gauss(0, 1) for _ in range(words)] for _ in range(SLOTS)]
        for part, number, count in [("train", i, lines) for i in range(files)] + [("val", 0, val_lines)]:
            os.makedirs(os.path.join(folder, part), exist_ok=True)
            with open(os.path.join(folder, part, f"part-{number}"), "w", encoding="utf-8") as file:
                file.writelines(print_line(*_sample(draw, liked, words)) for _ in range(count))

    return _made_once(f"clicks-{data_format}-{files}x{lines}-{val_lines}-{words}-{seed}", write)


def _sample(draw, liked, words):
    """(click, numbers, word of every slot)"""
    chosen = [draw.randrange(words) for _ in range(SLOTS)]
    numbers = [draw.randrange(10) for _ in range(NUMBERS)]
    score = sum(liked[slot][word] for slot, word in enumerate(chosen)) / 2
    score += sum(1.5 if (chosen[i] + chosen[i + 1]) % 2 else -1.5 for i in (0, 2)) + 0.2 * (numbers[0] - 4.5)
    return int(score + draw.gauss(0, 0.7) > 1), numbers, chosen


def _criteo(click, numbers, chosen):
    return "\t".join(map(str, [click, *numbers, *(f"w{word:x}" for word in chosen)])) + "\n"


def _multi_slot(click, numbers, chosen, words):
    scaled = " ".join(f"{n / 10}" for n in numbers)
    ids = " ".join(f"1 {slot * words + word}" for slot, word in enumerate(chosen))
    return f"{NUMBERS} {scaled} {ids} 1 {click}\n"


def generated_sentences(topics: int = 8, words_per_topic: int = 25, lines: int = 1000, seed: int = 0) -> str:
    """Folder with `dict` (lines `word count`) and `train` (two files of lines of ids): every sentence is about one topic, whose
    words are ids topic * words_per_topic and following; some words of it are of no topic, the ids after all those."""
    def write(folder):
        draw = random.Random(seed)
        of_topics = topics * words_per_topic
        counts = [0] * (of_topics + words_per_topic)
        os.makedirs(os.path.join(folder, "train"))
        for number in range(2):
            with open(os.path.join(folder, "train", f"part-{number}"), "w", encoding="utf-8") as file:
                for _ in range(lines // 2):
                    first = draw.randrange(topics) * words_per_topic
                    line = [(first if draw.random() < 0.8 else of_topics) + draw.randrange(words_per_topic) for _ in range(12)]
                    for word in line:
                        counts[word] += 1
                    file.write(" ".join(map(str, line)) + "\n")
        with open(os.path.join(folder, "dict"), "w", encoding="utf-8") as file:
            file.writelines(f"w{word} {count}\n" for word, count in enumerate(counts))

    return _made_once(f"sentences-{topics}x{words_per_topic}-{lines}-{seed}", write)
