"""A training step of ours and of PyTorch in other ways than plain f32: in 16 bits, or with recomputation."""
import dataclasses
import functools

from contest import Comparison, in_turn
from report import Figure
from runner import PEERS, settings
from suite import Case

MIB = 1 << 20
UNITS = {"resnet50": "images/s", "bert-base": "tokens/s"}
STATE = {"resnet50": 0, "bert-base": 3 * 4 * 110_106_428}  # bytes of parameters and of Adam, which every way keeps in f32
AMP_ASKED = {"amx": 2.0, "avx512_bf16": 1.6, "avx2": 0.9}  # of own f32
MEMORY = {"unit": "MiB", "lower_is_better": True}


def measure_amp(bench, runner, options):
    """Lists of figures, one per network and number of threads. Memory is measured with the first."""
    for model, batch in {"resnet50": 8 if options.quick else 32, "bert-base": 2 if options.quick else 8}.items():
        if model not in (options.models or [model]):
            continue
        numbers = [options.threads] if options.threads else [1] if options.quick else [1, 2]
        for threads in numbers:
            ways = Ways(bench, runner, options, model, options.batch or batch, threads)
            ways.add_ours("amp", "--amp", "bf16")
            ways.add_ours("own f32")
            ways.add_torch("torch autocast", "--autocast")
            ways.compare("amp", {"own f32": AMP_ASKED, "torch autocast": 1.3})
            if threads == numbers[0]:
                ways.compare("amp", {"own f32": 0.65}, name=memory_of(model), field="beyond_state_mib", **MEMORY)
                ways.compare("amp", {"torch autocast": 1.0 if STATE[model] else None}, name=f"memory of {model}",
                             field="peak_mib", **MEMORY)
            yield ways.figures()


def measure_recompute(bench, runner, options):
    model = "bert-base"
    ways = Ways(bench, runner, options, model, options.batch or (4 if options.quick else 32), options.threads or 1)
    ways.add_ours("recompute", "--recompute")
    ways.add_ours("own without")
    ways.add_torch("torch checkpoint", "--checkpoint")
    ways.compare("recompute", {"own without": 0.35}, name=memory_of(model), field="beyond_state_mib", **MEMORY)
    ways.compare("recompute", {"own without": 1.3}, name=f"time of {model}", unit="s", field="best_s", lower_is_better=True)
    ways.compare("recompute", {"torch checkpoint": 1.0}, name=f"memory of {model}", field="peak_mib", **MEMORY)
    ways.compare("recompute", {"torch checkpoint": 1.3})
    yield ways.figures()


def memory_of(model):
    return f"memory of {model}" + " beyond parameters and adam" * bool(STATE[model])


class Ways:
    """Players that train the same network, and what they are compared by."""

    def __init__(self, bench, runner, options, model, batch, threads):
        self.runner, self.quick, self.model = runner, options.quick, model
        self.rounds = 1 if options.quick else bench.rounds
        self.case = Case(bench.name, UNITS[model], {}, model, batch, threads=threads, steps=1 if options.quick else 3)
        self.players, self.modes, self.comparisons = {}, {}, []

    def add_ours(self, name, *flags):
        self.players[name] = functools.partial(self._run, [self.runner.tool, "bench", self.model, "--json", *flags])
        self.modes[name] = {name: ""}

    def add_torch(self, name, flag):
        self.modes[name] = {}
        if self.runner.missing("torch"):
            return
        for mode in ["default"] if self.quick else ["default", *["channels_last"] * (self.model == "resnet50"), "compile"]:
            self.modes[name][f"{name} {mode}"] = mode
            self.players[f"{name} {mode}"] = functools.partial(
                self._run, [self.runner.python, PEERS / "torch_peer.py", self.model, "--mode", mode, flag])

    def compare(self, ours, asked, name=None, **changes):
        for peer, bound in asked.items():
            case = dataclasses.replace(self.case, asked={peer: bound}, model=name or self.model, **changes)
            figure = Figure(case, peer, rounds=self.rounds)
            if not self.modes[peer]:
                figure.note(self.runner.missing(peer))
            self.comparisons.append(Comparison(figure, ours, self.modes[peer]))

    def figures(self):
        return in_turn(str(self.case), self.players, self.comparisons, self.rounds)

    def _run(self, command):
        cores = self.runner.cores(self.case.threads)
        line = self.runner.figures(command + settings(self.case), cores, self.case.threads)
        return {**line, "beyond_state_mib": line["peak_mib"] - STATE[self.model] / MIB}
