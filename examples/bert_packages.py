"""A small BERT reads what Debian's packages are, then learns from few labelled texts which section a package is in:

    python examples/bert_packages.py [seeds [steps]]      # minutes; curves in bert_packages.png

20 texts of each of 11 sections have a label, other ones with each seed. The same network from scratch is the comparison.
"""
import itertools
import statistics
import sys

import fleetx as X
import paddle
from paddle import static

SEEDS, STEPS = [int(word) for word in sys.argv[1:]] + [5, 4000][len(sys.argv) - 1:]
RATE, PASSES = 3e-3, 15  # of 1e-3 and 3e-3 the better rate for either
PRETRAINED = "bert_packages.safetensors"
folder = X.dataset.local_packages()
sizes = dict(vocab_size=8000, hidden=64, layers=2, heads=2, max_seq_len=64)


def trainer_of(model, rate, steps):
    """The rate rises for a tenth of the steps, then falls."""
    paddle.optimizer.Adam(X.utils.linear_warmup_decay(rate, steps // 10, steps)).minimize(model.loss, model.startup_prog)
    return X.MultiGPUTrainer()


def pretrain():
    """Hidden words and next sentences of texts without labels. Returns the curve."""
    bert = X.applications.Bert(**sizes, dropout=0.0, packed=True, init_std=0.1)
    trainer = trainer_of(bert, 3e-3, STEPS)
    passes = itertools.repeat(bert.get_train_dataloader(folder, tokens=1024, mask_rate=0.35))
    trainer.fit(bert, itertools.islice(itertools.chain.from_iterable(passes), STEPS), start_step=STEPS)
    trainer.val(bert, bert.get_val_dataloader(folder, tokens=1024))
    bert.save_params(PRETRAINED)
    return trainer.history["train loss"]


def classify(kind, seed):
    """[(pass, % of the texts of val.tsv that are right)]"""
    paddle.seed(seed)
    with static.scope_guard(static.Scope()):
        model = X.applications.BertClassifier(X.applications.BertClassifier.labels_of(folder), **sizes)
        loader = model.get_train_dataloader(folder, tokens=512, per_label=20, seed=seed)
        trainer = trainer_of(model, RATE, PASSES * len(loader))
        if kind == "pre-trained":
            model.load_pretrained(PRETRAINED)
        found = []
        for number in range(1, PASSES + 1):
            trainer.fit(model, loader, start_step=len(loader))
            found.append((number, 100 * trainer.val(model, model.get_val_dataloader(folder, tokens=4096))["acc"]))
        return found


curve = pretrain()
mean_curves = {}
for kind in ("pre-trained", "from scratch"):
    runs = [classify(kind, seed) for seed in range(SEEDS)]
    mean_curves[kind] = [(points[0][0], statistics.mean(acc for _, acc in points)) for points in zip(*runs)]
    last = [run[-1][1] for run in runs]
    print(f"{kind}: {statistics.mean(last):.1f} % right, standard deviation {statistics.stdev(last) if SEEDS > 1 else 0:.1f}: "
          + " ".join(f"{acc:.1f}" for acc in last), flush=True)
X.utils.plot_curves("bert_packages.png", {"Pre-training: loss": {"train": curve[::max(1, len(curve) // 200)]},
                                          "Which section? % right": mean_curves}, ["step", "pass"])
