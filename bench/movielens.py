"""Learning with parameter servers on real data: AUC of Wide & Deep on ml-100k, in every mode, against one process."""
import csv
import functools
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import ROOT, Failed, figures_of
from suite import Case

PACKAGE = "recbole==1.2.1"  # whose source has the data in dataset_example; its terms do not let us ship it
ALONE = "one process"
LEAST = 0.777  # of PyTorch's 0.777 to 0.783
NEAR = {"sync": 0.9987, "async": 0.9936, "geo": None}  # of the AUC of one process: within 0.001 and 0.005 of 0.78


def measure_auc(bench, runner, options):
    alone = Case(bench.name, "AUC", {}, f"ml-100k, {ALONE}", 256, threads=1, field="auc", limit=LEAST)
    try:
        table = data(runner)
    except Failed as why:
        print(f"{bench.name}: nothing is measured: {why}", file=sys.stderr, flush=True)
        yield [Figure(alone, "", skipped=True, notes=[str(why)])]
        return
    seeds = [1] if options.quick else [1, 2, 3]
    players = {ALONE: functools.partial(mean, runner, table, "sync", 0, seeds)}
    comparisons = [Comparison(Figure(alone, ""), ALONE)]
    for workers in [2] if options.quick else [1, 2, 4]:
        for mode, near in NEAR.items():
            name = f"{mode}, {workers} worker{'s' * (workers > 1)}"
            players[name] = functools.partial(mean, runner, table, mode, workers, seeds)
            case = Case(bench.name, "AUC", {ALONE: near}, f"ml-100k {mode}", 256, workers=workers, threads=1,
                        field="auc")
            comparisons.append(Comparison(Figure(case, ALONE), name, {ALONE: ""}))
    yield in_turn(f"{bench.name}, ml-100k", players, comparisons, 1)


def mean(runner, table, mode, workers, seeds):
    """Of the seeds. Without workers: one process without servers."""
    return {"auc": statistics.mean(train(runner, table, mode, workers, seed) for seed in seeds), "others": 0.0}


def train(runner, table, mode, workers, seed):
    python, env = runner.own_python
    job = [ROOT / "bench/movielens_job.py", table, "--mode", mode, "--seed", seed]
    launcher = [runner.tool.with_name("fleetrun"), "--server_num=1", f"--worker_num={workers}", f"--python={python}",
                "--log_dir=log"] if workers else [python]
    with tempfile.TemporaryDirectory() as folder:
        outs, _ = runner.together([{"command": [*launcher, *job], "env": env, "threads": 1, "folder": folder}])
        log = pathlib.Path(folder, "log/workerlog.0")
        return figures_of(log.read_text() if log.exists() else outs[0])["auc"]


def data(runner):
    """A file of ids and labels, made once from what the package client fetches."""
    path = ROOT / "build/bench-cache/ml-100k.txt"
    if path.exists():
        return path
    python, _ = runner.own_python
    with tempfile.TemporaryDirectory() as folder:
        fetch = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "--dest", folder, PACKAGE]
        fetched = subprocess.run(fetch, capture_output=True, text=True, check=False, timeout=300)
        packages = [*pathlib.Path(folder).glob("*.tar.gz")]
        if not packages:
            last = (fetched.stderr.strip().splitlines() or ["no message"])[-1]
            raise Failed(f"pip cannot fetch the source package {PACKAGE}, which has ml-100k: {last}")
        with tarfile.open(packages[0]) as package:
            tables = {name: rows(package, name) for name in ("inter", "user", "item")}
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, tables)
    return path


def rows(package, name):
    member = next(m for m in package.getnames() if m.endswith(f"ml-100k/ml-100k.{name}"))
    text = package.extractfile(member).read().decode().splitlines()
    return [{key.split(":")[0]: value for key, value in row.items()} for row in csv.DictReader(text, delimiter="\t")]


def write(path, tables):
    """A line per rating: whether it is 4 or 5, and eight fields, each with ids of its own."""
    users = {row["user_id"]: [row["age"], row["gender"], row["occupation"], row["zip_code"][:2]] for row in tables["user"]}
    items = {row["item_id"]: [row["release_year"], row["class"]] for row in tables["item"]}
    numbers = {}
    lines = []
    for row in tables["inter"]:
        fields = [row["user_id"], row["item_id"], *users[row["user_id"]], *items[row["item_id"]]]
        ids = [numbers.setdefault(pair, len(numbers)) for pair in enumerate(fields)]
        lines.append(" ".join(map(str, [int(float(row["rating"]) >= 4), *ids])))
    path.write_text("\n".join(lines))
