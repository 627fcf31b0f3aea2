"""A small BERT reads messages of programs in 16 languages, then learns from few labelled ones which language a message is in:

    python examples/bert_languages.py [seeds [steps]]      # half a minute; curves in bert_languages.png

5 messages of each language have a label, other ones with each seed. The same network from scratch is the comparison; messages that
are asked are of programs that neither has read.
"""
import itertools
import statistics
import sys

import fleetx as X
import paddle
from paddle import static

SEEDS, STEPS = [int(word) for word in sys.argv[1:]] + [5, 3000][len(sys.argv) - 1:]
LABELLED, PASSES = 5, 40
RATE = {"pre-trained": 0.003, "from scratch": 0.003}  # of 3e-4, 1e-3, 3e-3 and 1e-2 the best for either, on other texts
PRETRAINED = "bert_languages.safetensors"
folder = X.dataset.local_languages()
sizes = dict(vocab_size=4000, hidden=64, layers=1, heads=2, max_seq_len=64)


def trainer_of(model, rate, steps):
    """The rate rises for a tenth of the steps, then falls."""
    paddle.optimizer.Adam(X.utils.linear_warmup_decay(rate, steps // 10, steps)).minimize(model.loss, model.startup_prog)
    return X.MultiGPUTrainer()


def repeated(loader, passes=None):
    """Its batches; a pass has another order than the one before."""
    return itertools.chain.from_iterable(itertools.repeat(loader) if passes is None else itertools.repeat(loader, passes))


def pretrain():
    """Hidden words and next sentences of texts without labels. Returns the curve."""
    bert = X.applications.Bert(**sizes, dropout=0.0, packed=True, init_std=0.1)
    trainer = trainer_of(bert, 6e-3, STEPS)
    loader = bert.get_train_dataloader(folder, tokens=1024, mask_rate=0.35)
    trainer.fit(bert, itertools.islice(repeated(loader), STEPS), start_step=STEPS)
    trainer.val(bert, bert.get_val_dataloader(folder, tokens=1024))
    bert.save_params(PRETRAINED)
    return trainer.history["train loss"]


def classify(kind, seed):
    """% of the texts of val.tsv that are right."""
    paddle.seed(seed)
    with static.scope_guard(static.Scope()):
        model = X.applications.BertClassifier(X.applications.BertClassifier.labels_of(folder), **sizes)
        loader = model.get_train_dataloader(folder, tokens=512, per_label=LABELLED, seed=seed)
        steps = PASSES * len(loader)
        trainer = trainer_of(model, RATE[kind], steps)
        if kind == "pre-trained":
            model.load_pretrained(PRETRAINED)
        trainer.fit(model, repeated(loader, PASSES), start_step=steps)
        return 100 * trainer.val(model, model.get_val_dataloader(folder, tokens=4096))["acc"]


curve = pretrain()
found = {}
for kind in RATE:
    found[kind] = [classify(kind, seed) for seed in range(SEEDS)]
    print(f"{kind}: {statistics.mean(found[kind]):.1f} % right, standard deviation "
          f"{statistics.stdev(found[kind]) if SEEDS > 1 else 0:.1f}: " + " ".join(f"{acc:.1f}" for acc in found[kind]), flush=True)
X.utils.plot_curves("bert_languages.png", {"Pre-training: loss": {"train": curve[::max(1, len(curve) // 200)]},
                                           "Which language? % right": {kind: list(enumerate(accs)) for kind, accs in found.items()}},
                    ["step", "seed"])
