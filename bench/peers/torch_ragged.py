"""Measures PyTorch on sequences of real lengths: BERT-base and Transformer-base, in several ways to batch them.

The batches come from a file that bench/ragged_job.py has written: the same sequences, as many updates. Ways:
padded    -- a batch is padded to its longest sequence, as most scripts do
compile   -- the same by torch.compile with dynamic shapes
bucketed  -- the sequences of all batches are sorted by length first
nested    -- torch.nested, jagged layout
unpadded  -- layers work on the words of all sequences, attention on padded ones
packed    -- layers work on the words of all sequences, attention on one sequence after the other
"""
import argparse
import json
import math
import resource
import time

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.nested._internal import sdpa as nested_sdpa

from torch_models import Bert, fused

WAYS = ["padded", "compile", "bucketed", "nested", "unpadded", "packed"]


# ---- sequences in a batch: words of all sequences (rows), or padded, or nested ----
class Layout:
    """How the words of a batch stand in a tensor, and attention of each sequence to itself or to another layout's."""

    def __init__(self, lengths, way):
        self.way, self.lengths = way, lengths
        self.longest = max(lengths)
        seen = torch.arange(self.longest)[None] < torch.tensor(lengths)[:, None]
        self.places = seen.flatten().nonzero().squeeze(1)  # of real words in a padded batch
        self.mask = seen[:, None, None]
        self.full = bool(seen.all())
        self.offsets = torch.tensor([0, *numpy.cumsum(lengths)])  # one tensor: layouts of the same one can be combined

    def of_words(self, words, fill=0):
        """Values of all words, one sequence after the other, in this layout."""
        if self.way in ("unpadded", "packed"):
            return words
        if self.way == "nested":
            return torch.nested.nested_tensor_from_jagged(words, offsets=self.offsets)
        return self.pad(words, fill)

    def pad(self, words, fill=0):
        out = words.new_full((len(self.lengths) * self.longest, *words.shape[1:]), fill)
        return out.index_copy(0, self.places, words).view(len(self.lengths), self.longest, *words.shape[1:])

    def words_of(self, x):
        """All words, one sequence after the other."""
        if self.way in ("unpadded", "packed"):
            return x
        return x.values() if self.way == "nested" else self.unpad(x)

    def unpad(self, x):
        return x.flatten(0, 1)[self.places]


def attention(q, k, v, heads, of, to, causal=False):
    """q in the layout `of`, k and v in the layout `to`."""
    def split(x):
        return x.unflatten(-1, (heads, -1)).transpose(-3, -2)
    sdpa = F.scaled_dot_product_attention
    if of.way == "packed":
        parts = [sdpa(*(split(t)[None] for t in one), is_causal=causal)[0].transpose(0, 1).flatten(1)
                 for one in zip(q.split(of.lengths), k.split(to.lengths), v.split(to.lengths))]
        return torch.cat(parts)
    if of.way == "nested":
        # On CPUs there is one implementation; looking for others fails where there is no driver of CUDA.
        for other in ("cudnn_attention", "flash_attention", "efficient_attention"):
            setattr(nested_sdpa, f"can_use_{other}", lambda *_, **__: False)
        out = sdpa(split(q.contiguous()), split(k.contiguous()), split(v.contiguous()), is_causal=causal)
        return out.transpose(1, 2).flatten(-2)
    padded = of.way != "unpadded"
    q, k, v = (q, k, v) if padded else (of.pad(q), to.pad(k), to.pad(v))
    # Padding is at the end: what is causal does not see it, but for queries that are padding themselves.
    mask = None if causal or to.full else to.mask
    out = sdpa(split(q), split(k), split(v), attn_mask=mask, is_causal=causal).transpose(1, 2).flatten(-2)
    return out if padded else of.unpad(out)


# ---- BERT ----
class RaggedBert(Bert):
    def forward(self, batch):
        layout = batch["layout"]
        x = self.words(layout.of_words(batch["words"])) + self.sentences(layout.of_words(batch["sentences"])) + \
            F.embedding(layout.of_words(batch["places"]), self.positions)
        x = self.norm(x)
        for layer in self.layers:
            q, k, v = layer.qkv(x).chunk(3, -1)
            x = layer.norm1(x + layer.out(attention(q, k, v, layer.heads, layout, layout)))
            x = layer.norm2(x + layer.down(F.gelu(layer.up(x))))
        x = layout.words_of(x)
        follows = self.follows(torch.tanh(self.pooler(x[batch["first"]])))
        x = self.transform_norm(F.gelu(self.transform(x[batch["hidden"]])))
        words = F.linear(x, self.words.weight, self.word_bias)
        return F.cross_entropy(words, batch["answers"]) + F.cross_entropy(follows, batch["follows"])


def bert_samples(feed):
    """One dict per sequence."""
    places, count, hidden = feed["read_pos"], int(feed["label_weight"].sum()), int(feed["mask_weight"].sum())
    starts, at = places[feed["seq_first"]], places[feed["mask_pos"]]
    out = []
    for i in range(count):
        begin, end = int(starts[i]), int(starts[i] + feed["seq_len"][i])
        mine = [j for j in range(hidden) if begin <= at[j] < end]
        out.append({"words": feed["src_ids"][0, begin:end], "sentences": feed["sent_ids"][0, begin:end],
                    "hidden": at[mine] - begin, "answers": feed["mask_label"][mine, 0],
                    "follows": feed["labels"][i]})
    return out


def bert_batch(samples, way):
    lengths = [len(s["words"]) for s in samples]
    first = [0, *numpy.cumsum(lengths)[:-1]]
    join = {key: torch.from_numpy(numpy.concatenate([s[key] for s in samples])) for key in samples[0]}
    return {**join, "layout": Layout(lengths, way), "places": torch.cat([torch.arange(n) for n in lengths]),
            "first": torch.tensor(first), "hidden": torch.from_numpy(
                numpy.concatenate([s["hidden"] + at for s, at in zip(samples, first)])), "count": sum(lengths)}


# ---- Transformer ----
class Part(nn.Module):
    """A layer of the encoder, or of the decoder, normalized at the input of its parts."""

    def __init__(self, hidden, heads, intermediate, decoder, dropout=0.0):
        super().__init__()
        self.heads, self.decoder = heads, decoder
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, intermediate), nn.Linear(intermediate, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2 + decoder))
        if decoder:
            self.q, self.kv, self.out2 = nn.Linear(hidden, hidden), nn.Linear(hidden, 2 * hidden), nn.Linear(hidden, hidden)

    def forward(self, x, of, memory=None, to=None):
        q, k, v = self.qkv(self.norms[0](x)).chunk(3, -1)
        x = x + self.drop(self.out(attention(q, k, v, self.heads, of, of, causal=self.decoder)))
        if self.decoder:
            k, v = self.kv(memory).chunk(2, -1)
            x = x + self.drop(self.out2(attention(self.q(self.norms[1](x)), k, v, self.heads, of, to)))
        return x + self.drop(self.down(F.relu(self.up(self.norms[-1](x)))))


class Transformer(nn.Module):
    VOCABULARY = 32000

    def __init__(self, vocabulary=VOCABULARY, hidden=512, layers=6, heads=8, intermediate=2048, smoothing=0.1, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.hidden, self.smoothing = hidden, smoothing
        self.table = nn.Embedding(vocabulary, hidden)
        nn.init.normal_(self.table.weight, std=hidden ** -0.5)
        self.encoder = nn.ModuleList(Part(hidden, heads, intermediate, False, dropout) for _ in range(layers))
        self.decoder = nn.ModuleList(Part(hidden, heads, intermediate, True, dropout) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        rate = torch.exp(torch.arange(hidden // 2) * (-math.log(1e4) / (hidden // 2)))
        angle = torch.arange(512)[:, None] * rate
        self.register_buffer("sines", torch.cat([angle.sin(), angle.cos()], 1))

    def embed(self, words, layout, places):
        return self.drop(self.table(layout.of_words(words)) * math.sqrt(self.hidden) +
                         F.embedding(layout.of_words(places), self.sines))

    def encode(self, words, to, places):
        memory = self.embed(words, to, places)
        for layer in self.encoder:
            memory = layer(memory, to)
        return self.encoder_norm(memory)

    def decode(self, words, of, places, memory, to):
        x = self.embed(words, of, places)
        for layer in self.decoder:
            x = layer(x, of, memory, to)
        return self.decoder_norm(x)

    def forward(self, batch):
        of, to = batch["target"], batch["source"]
        memory = self.encode(batch["source_words"], to, batch["source_places"])
        # The loss is over real words.
        x = of.words_of(self.decode(batch["target_words"], of, batch["target_places"], memory, to))
        return F.cross_entropy(F.linear(x, self.table.weight), batch["next"], label_smoothing=self.smoothing)


def translation_samples(feed):
    out, at = [], [0, 0]
    for i in range(int((feed["src_len"] > 0).sum())):
        n = [int(feed["src_len"][i]), int(feed["trg_len"][i])]
        end = [at[0] + n[0], at[1] + n[1]]
        out.append({"source_words": feed["src_word"][0, at[0]:end[0]], "target_words": feed["trg_word"][0, at[1]:end[1]],
                    "next": feed["lbl_word"][0, at[1]:end[1], 0]})
        at = end
    return out


def translation_batch(samples, way):
    batch = {key: torch.from_numpy(numpy.concatenate([s[key] for s in samples])) for key in samples[0]}
    for side in ("source", "target"):
        lengths = [len(s[f"{side}_words"]) for s in samples]
        batch[side] = Layout(lengths, way)
        batch[f"{side}_places"] = torch.cat([torch.arange(n) for n in lengths])
    batch["count"] = len(batch["source_words"]) + len(batch["target_words"])
    return batch


# ---- measuring ----
def cut(samples, size_of, count):
    """Sorted by length, in as many batches of about as many words."""
    samples = sorted(samples, key=size_of)
    total, out, done = sum(map(size_of, samples)), [[]], 0
    for sample in samples:
        if done >= len(out) * total / count:
            out.append([])
        out[-1].append(sample)
        done += size_of(sample)
    return out


def batches_of(path, model, way):
    feeds = numpy.load(path)
    count = int(feeds["count"])
    samples_of, make, size = (bert_samples, bert_batch, "words") if model == "bert-base" else \
        (translation_samples, translation_batch, "target_words")
    lists = [samples_of({key[len(f"{i}."):]: feeds[key] for key in feeds.files if key.startswith(f"{i}.")})
             for i in range(count)]
    if way == "bucketed":
        lists = cut([s for samples in lists for s in samples], lambda s: len(s[size]), count)
    return [make(samples, "padded" if way in ("bucketed", "compile") else way) for samples in lists]


def main():
    parser = argparse.ArgumentParser(description="bench/run ragged calls it.")
    parser.add_argument("model", choices=["bert-base", "transformer"])
    parser.add_argument("data")
    parser.add_argument("--way", choices=WAYS, default="padded")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    net = RaggedBert() if options.model == "bert-base" else Transformer()
    adam = torch.optim.Adam(net.parameters(), lr=1e-4, **fused(torch.optim.Adam))
    batches = batches_of(options.data, options.model, options.way)
    run = torch.compile(net, dynamic=True) if options.way == "compile" else net

    def one_pass():
        for batch in batches:
            loss = run(batch)
            loss.backward()
            adam.step()
            adam.zero_grad()
        return loss.item()

    best = cpu = float("inf")
    for i in range(options.passes + 1):
        start, start_cpu = time.perf_counter(), time.process_time()
        loss = one_pass()
        if i > 0:
            best, cpu = min(best, time.perf_counter() - start), min(cpu, time.process_time() - start_cpu)
    words = sum(batch["count"] for batch in batches)
    print(json.dumps({"best_s": best, "cpu_s": cpu, "items_per_s": words / best, "loss": loss, "version": torch.__version__,
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
