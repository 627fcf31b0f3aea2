"""BERT-base and Transformer-base on sequences of real lengths. bench/run ragged calls it.

    ragged_job.py write bert-base DATA --tokens 1024 --batches 4    # packs of real text, for ours and the peers
    ragged_job.py train bert-base DATA --passes 3                   # seconds of a pass
    ragged_job.py data bert-base                                    # how fast batches are made
"""
import argparse
import json
import os
import pathlib
import resource
import time

import numpy

import fleetx as X
import paddle
from paddle import static

# A folder of its own: the vocabularies are larger than those of the examples.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "fleetx")


def model_of(name):
    if name == "bert-base":
        return X.applications.BertBase(dropout=0.0, packed=True)
    return X.applications.Transformer(dropout=0.0, packed=True)


def loader_of(name, model, tokens):
    """BERT's samples are pairs of sentences of notices and licences, the Transformer's are messages of programs."""
    if name == "bert-base":
        return model.get_train_dataloader(X.dataset.local_text(str(CACHE / "bench_text")), tokens=tokens, fill=False)
    return model.get_train_dataloader(X.dataset.local_messages("de", str(CACHE / "bench_messages_de")), tokens=tokens)


def real_tokens(feed):
    return int(sum(feed[name].sum() for name in ("seq_len", "src_len", "trg_len") if name in feed))


def write(options):
    model = model_of(options.model)
    loader = loader_of(options.model, model, options.tokens)
    feeds, values = [], {}
    for feed, in loader:
        feeds.append(feed)
        if len(feeds) == options.batches:
            break
    for i, feed in enumerate(feeds):
        values |= {f"{i}.{name}": value for name, value in feed.items()}
    numpy.savez(options.data, count=len(feeds), **values)
    lengths = numpy.concatenate([numpy.concatenate([feed[name] for name in ("seq_len", "src_len", "trg_len") if name in feed])
                                 for feed in feeds])
    lengths = lengths[lengths > 0]
    print(json.dumps({"best_s": 1, "sequences": len(lengths), "mean_length": float(lengths.mean()), "padding": loader.padding,
                      "deciles": [float(q) for q in numpy.quantile(lengths, numpy.arange(11) / 10)]}))


def train(options):
    model = model_of(options.model)
    with static.program_guard(model.main_prog, model.startup_prog):
        paddle.optimizer.Adam(learning_rate=1e-4).minimize(model.loss)
    exe = static.Executor()
    exe.run(model.startup_prog)
    data = numpy.load(options.data)
    feeds = [{v.name: data[f"{i}.{v.name}"] for v in model.inputs} for i in range(int(data["count"]))]
    best = cpu = float("inf")
    for number in range(options.passes + 1):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        for feed in feeds:
            loss, = exe.run(model.main_prog, feed=feed, fetch_list=[model.loss])
        if number > 0:
            best, cpu = min(best, time.perf_counter() - begin), min(cpu, time.process_time() - begin_cpu)
    print(json.dumps({"best_s": best, "cpu_s": cpu, "items_per_s": sum(map(real_tokens, feeds)) / best, "loss": float(loss.mean()),
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def data(options):
    """Text to tokens to batches, by the CPU time of one thread; and by the clock, how long a step waits for a batch."""
    model = model_of(options.model)
    loader_of(options.model, model, options.tokens)  # makes the text and its vocabulary
    begin = time.process_time()
    loader = loader_of(options.model, model, options.tokens)
    feeds = [feed for feed, in loader]
    all_of_it = time.process_time() - begin
    tokens = sum(map(real_tokens, feeds))
    begin, clock = time.process_time(), time.perf_counter()
    count = sum(1 for _ in loader)
    took = time.process_time() - begin
    print(json.dumps({"best_s": 1, "tokens": tokens, "padding": loader.padding, "from_text_tokens_per_s": tokens / all_of_it,
                      "batch_tokens_per_s": tokens / took, "batch_s": (time.perf_counter() - clock) / count}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "train", "data"])
    parser.add_argument("model", choices=["bert-base", "transformer"])
    parser.add_argument("data", nargs="?")
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    {"write": write, "train": train, "data": data}[options.what](options)


if __name__ == "__main__":
    main()
