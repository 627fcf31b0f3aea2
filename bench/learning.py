"""How well strategies learn: accuracy of every one and of the combinations of the documents, against plain data parallel."""
import dataclasses
import functools
import json
import statistics
import subprocess
import sys
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import ROOT, Failed, figures_of
from suite import Case

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
QUICK = [PLAIN, PLAIN_ADAM, "amp", "dgc", "localsgd", "lamb", "amp+recompute+lars"]


@dataclasses.dataclass(frozen=True)
class Task:
    network: str
    name: str
    batch: int  # of all workers
    epochs: int
    rates: dict  # optimizer -> highest learning rate
    least: float  # what a strategy has to reach of plain training
    limit: int = None  # pictures


# Of lars, the best of six by test accuracy (LeNet, one seed); the others are first guesses. So a comparison favours
# lars until all are tuned alike, on pictures that are held out.
CLOTHES = {"momentum": 0.05, "adam": 0.002, "lars": 0.25, "lamb": 0.01}
TASKS = [Task("lenet", "LeNet, Fashion-MNIST", 64, 5, CLOTHES, 0.995),
         Task("resnet", "small ResNet, Fashion-MNIST", 64, 3, CLOTHES, 0.995),
         Task("flowers", "ResNet-50 narrow, flowers", 32, 25,
              {"momentum": 0.05, "adam": 0.003, "lars": 0.25, "lamb": 0.01}, 0.98)]
QUICK_TASK = dataclasses.replace(TASKS[0], epochs=1, limit=12800)
# One step takes 8,192 pictures; of each optimizer the best rate counts.
LARGE = Task("lenet", "LeNet, Fashion-MNIST, batch 8,192", 8192, 20, {}, 1.0)
LARGE_RATES = {PLAIN: [0.05, 0.1, 0.2, 0.4], "lars": [0.5, 1.0, 2.0, 4.0], PLAIN_ADAM: [0.002, 0.004, 0.008],
               "lamb": [0.01, 0.02, 0.04]}


def measure_learning(bench, runner, options):
    """Lists of figures, one per task and number of workers. The curves of each are drawn, too."""
    seeds = [1] if options.quick else [1, 2, 3]
    for task in [QUICK_TASK] if options.quick else TASKS:
        for workers in [2] if options.quick else [2, 4]:
            school = School(bench, runner, task, workers, seeds)
            names = [name for name in (QUICK if options.quick else SETTINGS)
                     if task.network != "lenet" or name != "sync_batch_norm"]  # it has no batch norm
            rates = {name: [task.rates[optimizer_of(name)]] for name in names}
            yield school.figures({name: plain_of(name) for name in names if not name.startswith(PLAIN)}, rates)
    large, rates = LARGE, LARGE_RATES
    if options.quick:
        large, rates = dataclasses.replace(LARGE, epochs=2, limit=24576), {name: some[:1] for name, some in LARGE_RATES.items()}
    yield School(bench, runner, large, 2, seeds).figures({"lars": PLAIN, "lamb": PLAIN_ADAM}, rates)


def optimizer_of(name):
    return next((o for o in ("lars", "lamb") if o in name), "adam" if name == PLAIN_ADAM else "momentum")


def plain_of(name):
    return PLAIN_ADAM if "lamb" in name else PLAIN


class School:
    """Runs of one task."""

    def __init__(self, bench, runner, task, workers, seeds):
        self.bench, self.runner, self.task, self.workers, self.seeds = bench, runner, task, workers, seeds
        self.curves = {}  # setting -> (pass, share that is wrong), in the mean of the seeds

    def figures(self, pairs, rates):
        """pairs: setting -> what it is compared with; rates: of every setting, of which the best counts."""
        case = Case(self.bench.name, "% right", {}, batch=self.task.batch, workers=self.workers, threads=1, field="accuracy")
        comparisons = [Comparison(Figure(dataclasses.replace(case, asked={peer: self.task.least},
                                                             model=f"{self.task.name}, {name}"), peer), name, {peer: ""})
                       for name, peer in pairs.items()]
        players = {name: functools.partial(self._best, name, some) for name, some in rates.items()}
        figures = in_turn(f"{self.task.name}, {self.workers} workers", players, comparisons, 1)
        self._draw()
        return figures

    def _best(self, name, rates):
        return max((self._mean(name, rate) for rate in rates), key=lambda line: line["accuracy"])

    def _mean(self, name, rate):
        """Of the seeds."""
        lines = [self._run(name, rate, seed) for seed in self.seeds]
        curve = [statistics.mean(values) for values in zip(*(line["curve"] for line in lines))]
        accuracy = statistics.mean(line["accuracy"] for line in lines)
        if name not in self.curves or curve[-1] > 1 - self.curves[name][-1][1] / 100:
            self.curves[name] = [(i, 100 * (1 - share)) for i, share in enumerate(curve, 1)]
        print(f"  {self.task.name}, {name}, rate {rate:g}: {accuracy:.2f} % right", file=sys.stderr, flush=True)
        return {"accuracy": accuracy, "others": 0.0}

    def _run(self, name, rate, seed):
        task, fields = self.task, SETTINGS[name]
        parts = fields.get("gradient_merge_configs", {}).get("k_steps", 1)  # that make one batch
        python, env = self.runner.own_python
        job = ["--network", task.network, "--strategy", json.dumps(fields), "--lr", rate, "--epochs", task.epochs,
               "--batch", task.batch // self.workers // parts, "--seed", seed, "--optimizer",
               "adam" if optimizer_of(name) in ("adam", "lamb") else "momentum",
               *(["--limit", task.limit] if task.limit else [])]
        with tempfile.TemporaryDirectory() as folder:
            outs, _ = self.runner.together([{"command": [
                self.runner.tool.with_name("fleetrun"), f"--nproc_per_node={self.workers}", f"--python={python}",
                "--log_dir=log", ROOT / "bench/learning_job.py", *job], "env": env, "threads": 1, "folder": folder}])
        line = figures_of(outs[0])
        missing = [part for part in fields if not part.endswith("_configs") and part not in str(line["applied"])]
        if missing:
            raise Failed(f"{missing[0]} was not applied: {line['applied']}")
        return line

    def _draw(self):
        """Two panels: single strategies and combinations."""
        folder = ROOT / "build/bench-learning"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.task.network}-batch-{self.task.batch}-{self.workers}-workers.png"
        panels = [{"title": f"{self.task.name}: wrong, %", "x": "pass",
                   "series": {name: points for name, points in self.curves.items() if ("+" in name) == combined}}
                  for combined in (False, True)]
        python, env = self.runner.own_python
        code = "import json, sys; from paddle._native import native; native.plot_curves(sys.argv[1], json.load(sys.stdin))"
        subprocess.run([python, "-c", code, path], input=json.dumps([p for p in panels if p["series"]]), text=True, check=True,
                       env={**self.runner.env, **env})
        print(f"  curves: {path}", file=sys.stderr, flush=True)
