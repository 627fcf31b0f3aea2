"""What strategies that communicate less save where the link is slow: BERT-base, a worker on each of two hosts."""
import dataclasses
import functools
import pathlib
import sys
import tempfile

from contest import Comparison, in_turn
from hosts import UNLIMITED, CannotMakeHosts, Hosts
from net import Net
from report import Figure
from runner import Failed
from suite import Case

RATE, STEPS = "1gbit", 8  # as many steps as localsgd and gradient_merge have between two messages
DDP = "torch DDP"
STRATEGIES = {
    "dense": "",
    "fp16_allreduce": "fp16_allreduce: true",
    "dgc": "dgc: true dgc_configs { sparsity: 0.999 }",
    "localsgd": f"localsgd: true localsgd_configs {{ k_steps: {STEPS} }}",
    "gradient_merge": f"gradient_merge: true gradient_merge_configs {{ k_steps: {STEPS} }}",
}
# Strategy, peer, bound on the ratio, and what is compared.
SPEED = {"unit": "tokens/s", "field": "mean_items_per_s"}
CALLS = {"unit": "s", "field": "calls_s", "lower_is_better": True}
WAITED = {"unit": "s", "field": "waited_s", "lower_is_better": True}
ASKED = [("fp16_allreduce", "dense", 1 / 1.6, "communication", CALLS), ("dgc", "dense", 0.2, "waiting", WAITED),
         ("localsgd", f"localsgd {UNLIMITED}", 0.85, "speed", SPEED),
         ("gradient_merge", f"gradient_merge {UNLIMITED}", 0.9, "speed", SPEED),
         *((name, DDP, None, "speed", SPEED) for name in STRATEGIES)]


def measure_strategies(bench, runner, options):
    rounds = 1 if options.quick else bench.rounds
    case = Case(bench.name, "tokens/s", {}, "bert-base", options.batch or (2 if options.quick else 8), workers=2, threads=1, steps=STEPS)
    comparisons = []
    for name, peer, bound, what, kind in ASKED:
        figure = Figure(dataclasses.replace(case, asked={peer: bound}, model=f"bert-base {name} {what} at {RATE}", **kind),
                        peer, rounds=rounds)
        if runner.missing(peer):
            figure.note(runner.missing(peer))
        comparisons.append(Comparison(figure, name, {} if runner.missing(peer) else {peer: ""}))
    try:
        with Hosts(2, options.congestion) as hosts, tempfile.TemporaryDirectory() as folder:
            net = Net(bench, runner, options, hosts)
            players = {name: functools.partial(train, net, case, RATE, name, folder) for name in STRATEGIES}
            for name in ["localsgd", "gradient_merge"]:
                players[f"{name} {UNLIMITED}"] = functools.partial(train, net, case, UNLIMITED, name, folder)
            if not runner.missing(DDP):
                players[DDP] = functools.partial(train, net, case, RATE, DDP, folder)
            yield in_turn(f"{bench.name}, bert-base batch {case.batch} at {RATE}", players, comparisons, rounds)
    except CannotMakeHosts as why:
        print(f"{bench.name}: nothing is measured: {why}", file=sys.stderr, flush=True)
        yield [Figure(case, "", skipped=True, notes=[str(why)])]


def train(net, case, rate, name, folder):
    """The line of a run, whose steps count in their mean: only some of them communicate."""
    net.hosts.limit(rate)
    text = pathlib.Path(folder, f"{name}.prototxt")
    text.write_text(STRATEGIES.get(name, ""))
    flags = ["--profile", "--strategy", text, *["--momentum"] * (name == "dgc")]
    try:
        line, others = net.train("default" if name == DDP else "fleetx", case, "bert-base", flags)
    except Failed:
        net.hosts.end_processes()
        raise
    return {**line, "mean_items_per_s": line["items_per_s"] * line["best_s"] * case.steps / line["total_s"], "others": others}
