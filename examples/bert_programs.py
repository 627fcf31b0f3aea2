"""A small BERT learns from messages of this machine's programs, then to tell which program a message is of:

    python examples/bert_programs.py [passes]      # minutes; curves in bert_programs.png

The same network that begins from scratch is the comparison. Both see 100 messages of each of 16 programs.
"""
import sys
import tempfile

import fleetx as X
import paddle
from paddle import static
from paddle._native import native

paddle.enable_static()
PASSES, FINE_PASSES = int(sys.argv[1]) if len(sys.argv) > 1 else 4, 20
folder = X.dataset.local_programs()
sizes = dict(vocab_size=6000, hidden=128, layers=2, heads=4, max_seq_len=64)

def schedule(highest, steps):
    """Rises for a tenth of the steps: a BERT that begins with large steps stays where it knows how frequent words are."""
    falling = paddle.optimizer.lr.PolynomialDecay(highest, steps, 0.0)
    return paddle.optimizer.lr.LinearWarmup(falling, steps // 10, 0.0, highest)


# Pre-training: hidden words of messages without labels.
bert = X.applications.Bert(**sizes, dropout=0.0, packed=True)
loader = bert.get_train_dataloader(folder, tokens=1024, fill=False)
rate = schedule(1e-3, PASSES * len(loader))
paddle.optimizer.Adam(rate).minimize(bert.loss, bert.startup_prog)
trainer = X.MultiGPUTrainer()
curve = []
for number in range(PASSES):
    for feed, in loader:
        loss, = trainer.exe.run(bert.main_prog, feed=feed, fetch_list=[bert.target["word_loss"]])
        curve.append((len(curve) + 1, loss.item()))
        rate.step()
    trainer.val(bert, bert.get_val_dataloader(folder, tokens=1024, fill=False))
file = tempfile.NamedTemporaryFile(suffix=".safetensors")
bert.save_params(file.name)


def classify(pretrained):
    """Accuracies on messages that were not seen, after every pass."""
    paddle.seed(1)
    with static.scope_guard(static.Scope()):
        model = X.applications.BertClassifier(X.applications.BertClassifier.labels_of(folder), **sizes)
        loader = model.get_train_dataloader(folder, tokens=1024)
        rate = schedule(1e-3, FINE_PASSES * len(loader))
        paddle.optimizer.Adam(rate).minimize(model.loss, model.startup_prog)
        trainer = X.MultiGPUTrainer()
        if pretrained:
            model.load_pretrained(file.name)
        found = []
        for number in range(FINE_PASSES):
            for feed in loader:
                trainer.exe.run(model.main_prog, feed=feed, fetch_list=[])
                rate.step()
            found.append((number + 1, 100 * trainer.val(model, model.get_val_dataloader(folder))["acc"]))
        return found


accuracies = {name: classify(name == "pre-trained") for name in ("from scratch", "pre-trained")}
native.plot_curves("bert_programs.png", [
    {"title": "Pre-training: loss of hidden words", "x": "step", "series": {"train": curve[::max(1, len(curve) // 200)]}},
    {"title": "Which program? % right", "x": "pass", "series": accuracies}])
for name, points in accuracies.items():
    print(f"{name}: {points[-1][1]:.1f} % of the messages are told right")
