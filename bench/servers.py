"""Training with parameter servers: the job of peers/ctr.py by FleetX and by others, from text to updates on a server."""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import PEERS, ROOT, Failed, settings
from suite import Case

LINES = {False: 100_000, True: 20_000}  # by --quick
BATCH, COMPUTE_STEPS = 512, 200
TENSORFLOW, PADDLE2, PADDLE1, TORCH_RPC = "tensorflow", "paddle 2.6", "paddle 1.8", "torch RPC"
OWN_COMPUTE, TORCH_COMPUTE = "own compute alone", "torch compute alone"
# Of each number of workers: what of ours, against whom, and what is asked of the rate and of that per CPU second.
ROWS = {1: [("async", TENSORFLOW, 1.8, 1.8), ("async", PADDLE2, 3.5, 3.0), ("async", TORCH_RPC, None, None)],
        2: [("async", TENSORFLOW, 1.8, 1.8), ("async", PADDLE2, 3.5, 3.0), ("async", TORCH_RPC, None, None),
            ("sync", "own async", 0.9, None), ("sync", f"{TORCH_RPC} sync", None, None),
            ("half_async", f"{PADDLE1} half_async", 3.0, None), ("geo", f"{PADDLE1} geo", 3.0, None)]}
COMPUTE = [("async", OWN_COMPUTE, None), ("no servers", TORCH_COMPUTE, 1.0)]  # of one worker


def measure_ps(bench, runner, options):
    """Lists of figures, one list per number of workers."""
    rounds = 1 if options.quick else bench.rounds
    jobs = Jobs(runner, data(runner, LINES[options.quick]))
    for workers in ROWS:
        chosen = comparisons(bench, workers, rounds, runner)
        used = {name for c in chosen for name in [c.ours, *c.peers]}
        players = {name: run for name, run in jobs.players(workers).items() if name in used}
        yield in_turn(f"{bench.name}, 1 server + {workers} worker{'s' * (workers > 1)}", players, chosen, rounds)


def comparisons(bench, workers, rounds, runner):
    def compare(what, peer, asked, name, unit="examples/s", field="examples_per_s"):
        case = Case(bench.name, unit, {peer: asked}, name, BATCH, workers=workers, threads=1, field=field)
        figure = Figure(case, peer, rounds=rounds)
        player = peer.replace("own async", "fleetx async")
        missing = runner.missing(player)
        if missing:
            figure.note(missing)
        return Comparison(figure, f"fleetx {what}", {} if missing else {player: ""})

    found = []
    for what, peer, rate, per_cpu in ROWS[workers]:
        found += [compare(what, peer, rate, f"{what}, 1 server"),
                  compare(what, peer, per_cpu, f"CPU of {what}, 1 server", "examples/CPU s", "examples_per_cpu_s")]
    if workers == 1:
        found += [compare(what, peer, rate, f"{what} against compute") for what, peer, rate in COMPUTE]
    memory = Case(bench.name, "MiB", {}, "memory of a worker, async", BATCH, workers=workers, threads=1, field="rss_mib",
                  lower_is_better=True, limit=200)
    return [*found, Comparison(Figure(memory, "", rounds=rounds), "fleetx async")]


class Jobs:
    """Ways to run the job. A player is a function that gives the line of one run."""

    def __init__(self, runner, folder):
        self.runner, self.folder = runner, folder

    def players(self, workers):
        own = functools.partial(self.ours, workers)
        alone = Case("ps", "", {}, "wide-deep", BATCH, threads=1, warmup=20, steps=COMPUTE_STEPS)
        return {
            "fleetx async": lambda: own("paddle_ctr.py", "async"),
            TENSORFLOW: lambda: self.peer(TENSORFLOW, ["tensorflow_ctr.py", workers]),
            PADDLE2: lambda: self.paddle2(workers),
            TORCH_RPC: lambda: self.peer(TORCH_RPC, ["torch_ctr.py", workers]),
            "fleetx sync": lambda: own("paddle_ctr.py", "sync"),
            f"{TORCH_RPC} sync": lambda: self.peer(TORCH_RPC, ["torch_ctr.py", workers], "sync"),
            "fleetx half_async": lambda: own("paddle1_ctr.py", "half_async"),
            f"{PADDLE1} half_async": lambda: self.peer(PADDLE1, ["paddle1_ctr.py", workers], "half_async"),
            "fleetx geo": lambda: own("paddle1_ctr.py", "geo"),
            f"{PADDLE1} geo": lambda: self.peer(PADDLE1, ["paddle1_ctr.py", workers], "geo"),
            "fleetx no servers": self.without_servers,
            OWN_COMPUTE: lambda: self.compute([self.runner.tool, "bench", "wide-deep", "--json", *settings(alone)]),
            TORCH_COMPUTE: lambda: self.compute(
                [self.runner.python, PEERS / "torch_peer.py", "wide-deep", *settings(alone)]),
        }

    def ours(self, workers, script, mode):
        python, env = self.runner.own_python
        line = self._run([self.runner.tool.with_name("fleetrun"), "--server_num=1", f"--worker_num={workers}",
                          f"--python={python}", "--log_dir=log", PEERS / script], mode, env)
        return {**line, "version": ""}  # that of the API

    def without_servers(self):
        python, env = self.runner.own_python
        return self._run([python, PEERS / "paddle_ctr.py"], "async", env)

    def paddle2(self, workers):
        return self.peer(PADDLE2, ["-m", "paddle.distributed.launch", "--server_num=1", f"--worker_num={workers}",
                                   "--log_dir=log", "paddle_ctr.py"])

    def peer(self, name, command, mode="async"):
        command = [PEERS / part if str(part).endswith(".py") else part for part in command]
        return self._run([self.runner.interpreter(name), *command], mode, {})

    def compute(self, command):
        """Over all steps, as the pass of a job counts: not the best step."""
        line = self.runner.figures(command, self.runner.cores(1), 1)
        return {**line, "examples_per_s": BATCH * COMPUTE_STEPS / line["total_s"]}

    def _run(self, command, mode, env):
        with tempfile.TemporaryDirectory() as folder:
            env = {**env, "CTR_DATA": self.folder, "CTR_NOTES": folder, "CTR_MODE": mode, "CTR_JOB": folder,
                   "CPU_NUM": 1, "FLEETX_THREADS": 1}
            _, usage = self.runner.together([{"command": command, "env": env, "threads": 1, "folder": folder}])
            notes = [json.loads(path.read_text()) for path in pathlib.Path(folder).glob("worker-*.json")]
        if not notes:
            raise Failed("no worker came to its end")
        return joined(notes, usage)


def joined(notes, usage):
    """The pass of a job, from the first worker's begin to the last one's end."""
    def span(begin, end):
        return max(note[end] for note in notes) - min(note[begin] for note in notes)
    examples, cpu = sum(note["examples"] for note in notes), span("cpu_begin_s", "cpu_end_s")
    return {"examples_per_s": examples / span("begin_s", "end_s"), "examples_per_cpu_s": examples / cpu,
            "rss_mib": max(note["rss_mib"] for note in notes), "version": notes[0]["version"],
            "others": usage.of_others(least=cpu)}


def data(runner, lines):
    """The folder of the data, made once."""
    folder = ROOT / f"build/bench-cache/ctr-{lines}"
    if not folder.exists():
        print(f"ps: writing {lines:,} lines into {folder}", file=sys.stderr, flush=True)
        new = folder.with_name(f"{folder.name}.{os.getpid()}")
        new.mkdir(parents=True)
        python, _ = runner.own_python
        subprocess.run([python, "-c", f"import ctr; ctr.write_files({str(new)!r}, {lines})"], check=True, cwd=PEERS)
        new.rename(folder)
    return folder
