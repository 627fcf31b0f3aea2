"""Trains PyTorch's Transformer on the batches of bench/translation_job.py and translates, greedily and by beams.

The same network, initial distributions, batches, steps and schedule; the search is a plain one that computes all words again
in every step. bench/run transformer-bleu calls it.
"""
import argparse
import json
import pathlib

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from torch_ragged import Layout, Transformer, translation_batch, translation_samples


def initialize(net):
    """Glorot's uniform distribution for every matrix, those of queries, keys and values each by itself."""
    for module in net.modules():
        if isinstance(module, nn.Linear):
            parts = module.weight.shape[0] // module.weight.shape[1] if module.weight.shape[0] in (
                2 * module.weight.shape[1], 3 * module.weight.shape[1]) else 1
            for part in module.weight.data.chunk(parts):
                nn.init.xavier_uniform_(part)
            nn.init.zeros_(module.bias)


def train(net, task, batches):
    adam = torch.optim.Adam(net.parameters(), lr=1.0, betas=(0.9, task["adam"]["beta2"]), eps=task["adam"]["epsilon"])
    schedule, losses = task["schedule"], []
    net.train()
    for i in range(int(batches["count"])):
        feed = {key.split(".", 1)[1]: batches[key] for key in batches.files if key.startswith(f"{i}.")}
        # Steps are counted from 0, as by paddle's NoamDecay: the first one has a rate of 0.
        rate = schedule["learning_rate"] * schedule["d_model"] ** -0.5 * min(
            max(1, i) ** -0.5, i * schedule["warmup_steps"] ** -1.5)
        for group in adam.param_groups:
            group["lr"] = rate
        loss = net(translation_batch(translation_samples(feed), "unpadded"))
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return float(numpy.mean(losses[-20:]))


@torch.inference_mode()
def translate(net, task, beams, penalty=0.6):
    net.eval()
    return [search(net, source, task, beams, penalty) for source in task["sources"]]


def search(net, source, task, beams, penalty):
    """The best translation of one name."""
    words = torch.tensor([*source, task["end"]])
    to = Layout([len(words)], "padded")
    memory = net.encode(words, to, torch.arange(len(words)))
    alive, done = [([task["begin"]], 0.0)], []

    def normalized(pair):
        return pair[1] / ((5 + len(pair[0]) - 1) / 6) ** penalty
    for length in range(1, 2 * len(source) + 50):
        of = Layout([length] * len(alive), "padded")
        many = Layout([len(words)] * len(alive), "padded")
        flat = torch.tensor([w for prefix, _ in alive for w in prefix])
        places = torch.arange(length).repeat(len(alive))
        x = net.decode(flat, of, places, memory.expand(len(alive), -1, -1), many)
        scores = F.log_softmax(F.linear(x[:, -1], net.table.weight), -1) + torch.tensor([s for _, s in alive])[:, None]
        best = scores.flatten().topk(min(2 * beams, scores.numel()))
        following = []
        for score, place in zip(best.values.tolist(), best.indices.tolist()):
            prefix, word = alive[place // scores.shape[1]][0], place % scores.shape[1]
            if word == task["end"]:
                if len(following) < beams:
                    done.append(([*prefix, word], score))
            elif len(following) < beams:
                following.append(([*prefix, word], score))
        alive = following
        if len(done) >= beams and max(map(normalized, done)) >= normalized(alive[0]):
            break
    best = max(done or alive, key=normalized)[0]
    return [w for w in best[1:] if w != task["end"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.set_flush_denormal(True)
    folder = pathlib.Path(options.folder)
    task = json.loads((folder / "task.json").read_text())
    sizes = task["sizes"]
    net = Transformer(sizes["vocabulary"], sizes["hidden"], sizes["layers"], sizes["heads"], sizes["intermediate"],
                      sizes["label_smoothing"], sizes["dropout"])
    initialize(net)
    loss = train(net, task, numpy.load(folder / "batches.npz"))
    pathlib.Path(options.out).write_text(json.dumps({"loss": loss, **{
        name: translate(net, task, beams) for name, beams in (("greedy", 1), ("beam", 4))}}))
    print(json.dumps({"best_s": 1, "loss": loss, "version": torch.__version__}))


if __name__ == "__main__":
    main()
