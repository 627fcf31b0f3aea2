"""A small Transformer learns to write names in Ukrainian. bench/run transformer-bleu calls it.

    translation_job.py write FOLDER --passes 8        # batches of all passes, and what is to be translated
    translation_job.py train FOLDER --seed 1          # trains on them; BLEU and exact translations, greedy and by 4 beams
    translation_job.py score FOLDER FILE              # the same figures of translations that a peer has written
"""
import argparse
import json
import pathlib

import numpy

import fleetx as X
import paddle
from fleetx.applications.transformer import read_pairs
from paddle import static

SIZES = dict(hidden=128, layers=2, heads=4, intermediate=512, dropout=0.1, label_smoothing=0.05)
SCHEDULE = dict(d_model=128, warmup_steps=300, learning_rate=0.5)
ADAM = dict(beta2=0.98, epsilon=1e-9)


def model_of(folder):
    """With the loader, which brings the tokenizer."""
    model = X.applications.Transformer("small", vocab_size=600, packed=True, **SIZES)
    return model, model.get_train_dataloader(folder, tokens=1024, merges=100)


def write(options):
    names = X.dataset.local_names("uk")
    model, loader = model_of(names)
    values, count = {}, 0
    for _ in range(options.passes):
        for feed, in loader:
            values |= {f"{count}.{name}": value for name, value in feed.items()}
            count += 1
    numpy.savez(pathlib.Path(options.folder, "batches.npz"), count=count, **values)
    pairs = read_pairs(pathlib.Path(names, "val.tsv"))[:options.most]
    marks = [model.tokenizer.token_to_id(mark) for mark in ("<s>", "<e>")]
    task = {"sizes": {**SIZES, "vocabulary": 600}, "schedule": SCHEDULE, "adam": ADAM, "names": names, "begin": marks[0],
            "end": marks[1], "sources": [model.tokenizer.encode(source) for source, _ in pairs],
            "references": [target for _, target in pairs]}
    pathlib.Path(options.folder, "task.json").write_text(json.dumps(task))
    print(json.dumps({"best_s": 1, "steps": count, "pairs": loader.samples, "names": len(pairs)}))


def train(options):
    paddle.seed(options.seed)
    task = json.loads(pathlib.Path(options.folder, "task.json").read_text())
    model, _ = model_of(task["names"])
    model.startup_prog.random_seed = model.main_prog.random_seed = options.seed
    rate = paddle.optimizer.lr.NoamDecay(**SCHEDULE)
    with static.program_guard(model.main_prog, model.startup_prog):
        paddle.optimizer.Adam(learning_rate=rate, **ADAM).minimize(model.loss)
    exe = static.Executor()
    exe.run(model.startup_prog)
    batches = numpy.load(pathlib.Path(options.folder, "batches.npz"))
    losses = []
    for i in range(int(batches["count"])):
        feed = {v.name: batches[f"{i}.{v.name}"] for v in model.inputs}
        losses.append(exe.run(model.main_prog, feed=feed, fetch_list=[model.loss])[0].item())
        rate.step()
    texts = [model.tokenizer.decode(source) for source in task["sources"]]
    report({name: figures(model.translate(texts, beams=beams), task["references"])
            for name, beams in (("greedy", 1), ("beam", 4))}, numpy.mean(losses[-20:]))


def score(options):
    """Of numbers of words, by the same tokenizer."""
    task = json.loads(pathlib.Path(options.folder, "task.json").read_text())
    tokenizer = model_of(task["names"])[0].tokenizer
    found = json.loads(pathlib.Path(options.file).read_text())
    report({name: figures([tokenizer.decode(words) for words in found[name]], task["references"])
            for name in ("greedy", "beam")}, found["loss"])


def figures(translations, references):
    right = sum(a == b for a, b in zip(translations, references))
    return X.text.bleu(translations, references, unit="char"), 100 * right / len(references)


def report(found, loss):
    print(json.dumps({"best_s": 1, "loss": float(loss), **{
        f"{what}_{name}": value for name, pair in found.items() for what, value in zip(("bleu", "right"), pair)}}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "train", "score"])
    parser.add_argument("folder")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--most", type=int, help="names to translate (default: all for validation)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    {"write": write, "train": train, "score": score}[options.what](options)


if __name__ == "__main__":
    main()
