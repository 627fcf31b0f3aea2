"""A hundred workers and eight servers on this machine: how soon they train, what memory they take, whether they end."""
import functools
import pathlib
import subprocess
import tempfile
import time

from contest import Comparison, in_turn
from report import Figure
from runner import ROOT, Failed
from suite import Case

BARE = "import numpy"  # in as many processes at the same time


def measure_many(bench, runner, options):
    workers, servers, steps = (10, 2, 10) if options.quick else (100, 8, 50)
    rounds = 1 if options.quick else bench.rounds
    job = functools.partial(run_job, runner, workers, servers, steps)
    players = {"C++": functools.partial(job, [], runner.build / "bench/bench_ps_many"),
               "Python": functools.partial(job, [f"--python={runner.own_python[0]}"], ROOT / "bench/many_job.py"),
               BARE: functools.partial(import_numpy, runner, workers + servers)}

    def figure(what, unit, field, peer="", asked=None, limit=None):
        return Figure(Case(bench.name, unit, {peer: asked} if peer else {}, f"{what}, {servers} servers", workers=workers,
                           threads=1, field=field, lower_is_better=True, limit=limit), peer, rounds=rounds)
    comparisons = [
        Comparison(figure("C++ until all train", "s", "start_s", limit=5), "C++"),
        Comparison(figure("Python until all train", "s", "start_s", BARE, 1.5), "Python", {BARE: ""}),
        *(Comparison(figure(f"{who}, memory of all", "MiB", "memory_mib"), who) for who in ("C++", "Python")),
        *(Comparison(figure(f"{who}, start to end of {steps} steps", "s", "seconds"), who) for who in ("C++", "Python"))]
    yield in_turn(f"{bench.name}, {workers} workers, {servers} servers", players, comparisons, rounds)


def run_job(runner, workers, servers, steps, flags, program):
    """Fails unless all processes come to their end, which they note."""
    _, env = runner.own_python
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        _, usage = runner.together([{"command": [
            runner.tool.with_name("fleetrun"), f"--server_num={servers}", f"--worker_num={workers}", "--log_dir=log", *flags,
            program, folder, steps], "env": env, "threads": 1, "folder": folder}])
        seconds = time.monotonic() - begin
        ready, *ended = ([float(path.read_text()) for path in pathlib.Path(folder).glob(f"{role}-*")]
                         for role in ("ready", "worker", "server"))
    for role, count, notes in [("workers", workers, ended[0]), ("servers", servers, ended[1])]:
        if len(notes) != count:
            raise Failed(f"{len(notes)} of {count} {role} came to their end")
    return {"start_s": max(ready) - begin, "memory_mib": sum(map(sum, ended)), "seconds": seconds,
            "others": usage.of_others()}


def import_numpy(runner, count):
    python, env = runner.own_python
    begin = time.monotonic()
    # In sessions of their own, as fleetrun starts its processes: sessions share the cores equally.
    processes = [subprocess.Popen([python, "-c", BARE], env={**runner.env, **env, "OMP_NUM_THREADS": "1"},
                                  start_new_session=True) for _ in range(count)]
    if any([process.wait() for process in processes]):
        raise Failed(f"{python} has no numpy")
    return {"start_s": time.monotonic() - begin, "others": 0.0}
