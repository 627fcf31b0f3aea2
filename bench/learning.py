"""How well strategies learn: accuracy of every one and of the combinations of the documents, against plain data parallel."""
import dataclasses
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import ROOT, Failed
from suite import Case

FOLDER = ROOT / "build/bench-learning"
PLAIN, PLAIN_ADAM = "plain", "plain adam"
LOCAL = {"localsgd": True, "localsgd_configs": {"k_steps": 4}}
ADAPTIVE = {"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 1}}
LARS = {"lars": True, "lars_configs": {"lars_coeff": 0.02, "lars_weight_decay": 0.0005}}
LAMB, AMP, RECOMPUTE, DGC = {"lamb": True}, {"amp": True}, {"recompute": True}, {"dgc": True}
SETTINGS = {  # name -> fields of DistributedStrategy
    PLAIN: {}, PLAIN_ADAM: {}, "amp": AMP, "recompute": RECOMPUTE, "lars": LARS, "lamb": LAMB, "dgc": DGC,
    "localsgd": LOCAL, "adaptive_localsgd": ADAPTIVE,
    "gradient_merge": {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2}},
    "fp16_allreduce": {"fp16_allreduce": True}, "sync_batch_norm": {"sync_batch_norm": True},
    # the ten of the documents
    "amp+recompute": AMP | RECOMPUTE, "dgc+recompute": DGC | RECOMPUTE, "lars+recompute": LARS | RECOMPUTE,
    "lamb+recompute": LAMB | RECOMPUTE, "amp+localsgd": AMP | LOCAL, "amp+adaptive_localsgd": AMP | ADAPTIVE,
    "amp+lars": AMP | LARS, "amp+lamb": AMP | LAMB, "amp+recompute+lars": AMP | RECOMPUTE | LARS,
    "amp+recompute+lamb": AMP | RECOMPUTE | LAMB,
}
OF_OPTIMIZER = {"momentum": PLAIN, "adam": PLAIN_ADAM, "lars": "lars", "lamb": "lamb"}  # the setting that a rate is chosen by
QUICK = [PLAIN, PLAIN_ADAM, "amp", "dgc", "localsgd", "lamb", "amp+recompute+lars"]
SEEDS = [1, 2, 3]


@dataclasses.dataclass(frozen=True)
class Task:
    pictures: str
    network: str
    name: str
    batch: int  # of all workers
    epochs: int
    rates: dict  # optimizer -> highest learning rates, of which the best on pictures that are held out is taken
    least: float  # what a strategy has to reach of plain training
    limit: int = None  # pictures to train on
    pairs: dict = None  # setting -> what it is compared with; None: all settings with their plain ones


RATES = {"momentum": [0.05, 0.1], "adam": [0.002, 0.004], "lars": [0.25, 0.5], "lamb": [0.01, 0.02]}
TASKS = [Task("clothes", "lenet", "LeNet, Fashion-MNIST", 64, 2, RATES, 0.995, 20480),
         Task("clothes", "resnet", "small ResNet, Fashion-MNIST", 64, 2, RATES, 0.995, 20480),
         # One step takes 8,192 pictures.
         Task("clothes", "lenet", "LeNet, Fashion-MNIST, batch 8,192", 8192, 5,
              {"momentum": [0.1, 0.3, 0.9], "adam": [0.002, 0.006, 0.018], "lars": [1.0, 3.0, 9.0], "lamb": [0.01, 0.03, 0.09]},
              1.0, 49152, {"lars": PLAIN, "lamb": PLAIN_ADAM}),
         Task("flowers", "resnet", "small ResNet, flowers", 32, 8, RATES, 0.98)]


def measure_learning(bench, runner, options):
    """Lists of figures, one per task and number of workers. The curves of each are drawn, too."""
    notes = Notes(options.resume)
    seeds = SEEDS[:1] if options.quick else SEEDS
    tasks = [quick(TASKS[0], 6400), quick(TASKS[2], 16384)] if options.quick else TASKS
    rates = {}  # task -> optimizer -> rate: chosen with two workers
    for workers in (2,) if options.quick else (2, 4):
        for task in tasks:
            if task.pairs and workers > 2:
                continue
            pairs = task.pairs or pairs_of(task, QUICK if options.quick else SETTINGS)
            school = School(bench, runner, notes, task, workers)
            try:
                rates[task.name] = rates.get(task.name) or school.choose_rates(pairs)
                yield school.figures(pairs, rates[task.name], seeds)
            except Failed as why:
                yield [Figure(school.case, PLAIN, notes=[f"no rates were chosen: {why}"])]


def quick(task, limit):
    return dataclasses.replace(task, limit=limit, rates={o: some[:1] for o, some in task.rates.items()})


def pairs_of(task, settings):
    return {name: plain_of(name) for name in settings if not name.startswith(PLAIN) and
            (task.network != "lenet" or name != "sync_batch_norm")}  # it has no batch norm


def optimizer_of(name):
    return next((o for o in ("lars", "lamb") if o in name), "adam" if name == PLAIN_ADAM else "momentum")


def plain_of(name):
    return PLAIN_ADAM if "lamb" in name else PLAIN


class Notes:
    """Lines of finished runs, in a file that grows by each."""

    def __init__(self, path):
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.path = path or FOLDER / "runs.json"
        if path is None:
            self.path.write_text("")
        self.path.touch()

    def find(self, run, workers):
        """The line of that run, or None."""
        for line in map(json.loads, self.path.read_text().splitlines()):
            if line["workers"] == workers and all(line[key] == value for key, value in run.items()):
                return line
        return None


class School:
    """Runs of one task."""

    def __init__(self, bench, runner, notes, task, workers):
        self.runner, self.notes, self.task, self.workers = runner, notes, task, workers
        self.case = Case(bench.name, "% right", {}, task.name, task.batch, workers=workers, threads=1, field="accuracy")

    def choose_rates(self, pairs):
        """Optimizer -> the rate that is best on pictures that are held out, with the first seed."""
        optimizers = sorted({optimizer_of(name) for pair in pairs.items() for name in pair})
        runs = {(o, rate): self._run(OF_OPTIMIZER[o], rate, SEEDS[0]) for o in optimizers for rate in self.task.rates[o]
                if len(self.task.rates[o]) > 1}
        self._train([*runs.values()])
        chosen = {o: self.task.rates[o][0] for o in optimizers}
        for o in {o for o, _ in runs}:
            right = {rate: self._line(run)["curve"][-1] for (of, rate), run in runs.items() if of == o}
            chosen[o] = max(right, key=right.get)
            print(f"  {self.task.name}, {o}: rate {chosen[o]:g}; held out, of " +
                  ", ".join(f"{rate:g} {100 * share:.2f} %" for rate, share in right.items()), file=sys.stderr, flush=True)
        return chosen

    def figures(self, pairs, rates, seeds):
        """pairs: setting -> what it is compared with."""
        names = [*dict.fromkeys([*pairs.values(), *pairs])]
        runs = {name: [self._run(name, rates[optimizer_of(name)], seed) for seed in seeds] for name in names}
        failure = None
        for i in range(len(seeds)):  # a job for each seed
            try:
                self._train([runs[name][i] for name in names])
            except Failed as why:
                failure = why
        comparisons = [Comparison(Figure(dataclasses.replace(self.case, asked={peer: self.task.least},
                                                             model=f"{self.task.name}, {name}"), peer), name, {peer: ""})
                       for name, peer in pairs.items()]
        curves = {}

        def player(name):
            def mean():
                lines = [self._line(run) for run in runs[name]]
                if None in lines:
                    raise failure or Failed("not run")
                curves[name] = [statistics.mean(values) for values in zip(*(line["curve"] for line in lines))]
                return {"accuracy": statistics.mean(line["accuracy"] for line in lines), "others": 0.0}
            return mean
        figures = in_turn(f"{self.task.name}, {self.workers} workers", {name: player(name) for name in names}, comparisons, 1)
        for comparison in comparisons:
            self._note_differences(comparison, runs, pairs)
        if curves:
            self._draw(curves)
        return figures

    def _note_differences(self, comparison, runs, pairs):
        """How far the seeds are apart: the same seed has the same pictures in the same order with both."""
        own, other = ([self._line(run) for run in runs[name]] for name in (comparison.ours, pairs[comparison.ours]))
        if None in own + other or len(own) < 2:
            return
        differences = [a["accuracy"] - b["accuracy"] for a, b in zip(own, other)]
        error = statistics.stdev(differences) / math.sqrt(len(differences))
        comparison.figure.note(f"difference {statistics.mean(differences):+.2f} +- {error:.2f}")

    def _run(self, name, rate, seed):
        task, fields = self.task, SETTINGS[name]
        parts = fields.get("gradient_merge_configs", {}).get("k_steps", 1)  # that make one batch
        return {"pictures": task.pictures, "network": task.network, "strategy": fields, "lr": rate, "epochs": task.epochs,
                "batch": task.batch // self.workers // parts, "limit": task.limit, "seed": seed,
                "optimizer": "adam" if optimizer_of(name) in ("adam", "lamb") else "momentum"}

    def _line(self, run):
        return self.notes.find(run, self.workers)

    def _train(self, runs):
        """Those that have no line yet, in one job."""
        missing = [run for run in runs if self._line(run) is None]
        if not missing:
            return
        python, env = self.runner.own_python
        print(f"  {self.task.name}, {self.workers} workers: {len(missing)} runs", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "runs.json")
            file.write_text(json.dumps(missing))
            self.runner.together([{"command": [
                self.runner.tool.with_name("fleetrun"), f"--nproc_per_node={self.workers}", f"--python={python}", "--log_dir=log",
                ROOT / "bench/learning_job.py", file, self.notes.path], "env": env, "threads": 1, "folder": folder}])
        for run in missing:
            line = self._line(run)
            absent = [part for part in run["strategy"] if not part.endswith("_configs") and part not in line["applied"]]
            if absent:
                raise Failed(f"{absent[0]} was not applied: {line['applied']}")

    def _draw(self, curves):
        """Two panels: single strategies and combinations, on the pictures that are held out."""
        path = FOLDER / f"{self.task.pictures}-{self.task.network}-batch-{self.task.batch}-{self.workers}-workers.png"
        wrong = {name: [(i, 100 * (1 - share)) for i, share in enumerate(curve, 1)] for name, curve in curves.items()}
        panels = {f"{self.task.name}: {title}, % wrong":
                  {name: points for name, points in wrong.items() if ("+" in name) == combined}
                  for title, combined in (("strategies", False), ("combinations", True))}
        python, env = self.runner.own_python
        code = "import json, sys; from fleetx.utils import plot_curves; " \
               "plot_curves(sys.argv[1], json.load(sys.stdin), x='pass', from_zero=False)"
        subprocess.run([python, "-c", code, path], input=json.dumps({t: p for t, p in panels.items() if p}), text=True, check=True,
                       env={**self.runner.env, **env})
        print(f"  curves: {path}", file=sys.stderr, flush=True)
