"""A model that does not fit: two workers with little memory each, in control groups of their own."""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from busy import hierarchy
from report import Figure
from runner import Failed
from suite import Case

WORKERS = 2
MIB = 1 << 20
# model, batch and MiB of a worker; the small one is for a first impression
LARGE, SMALL = ("bert-0.7b", 4, 8192), ("bert-base", 2, 1500)
REFUSED = {"plain": "", "recompute": "recompute: true", "amp + recompute": "amp: true recompute: true"}
TRAINED = {"auto": 'auto: true auto_configs { allow: "amp" batch_size: %d }',
           "sharding 3 + recompute": "sharding: true sharding_configs { stage: 3 } recompute: true"}
STEPS = 20
FROM_PLAN = 1.05


def measure_does_not_fit(bench, runner, options):
    """What the plan refuses, with the bytes that are missing; then what trains: peak of each worker, its plan, and the loss."""
    model, batch, limit = SMALL if options.quick else LARGE
    available = next(int(line.split()[1]) >> 10 for line in pathlib.Path("/proc/meminfo").read_text().splitlines()
                     if line.startswith("MemAvailable:"))
    steps = 3 if options.quick else STEPS
    with tempfile.TemporaryDirectory() as folder:
        for name, text in REFUSED.items():
            yield [refused(bench, runner, folder, model, batch, limit, name, text)]
        for name, text in TRAINED.items():
            text = text % batch if "%d" in text else text
            if available < WORKERS * limit:
                yield [Figure(case_of(bench, model, batch, name), "", skipped=True,
                              notes=[f"it needs {WORKERS * limit} MiB, and {available} MiB are free"])]
                continue
            yield trained(bench, runner, folder, model, batch, limit, steps, name, text)


def case_of(bench, model, batch, name, **more):
    return Case(bench.name, "MiB", {}, f"{model} {name}", batch, workers=WORKERS, threads=1, field="mib", **more)


def written(folder, name, text):
    file = pathlib.Path(folder, name.replace(" ", "_") + ".prototxt")
    file.write_text(text)
    return file


def refused(bench, runner, folder, model, batch, limit, name, text):
    """Ours: what the plan says that there should be more of, at least a byte."""
    figure = Figure(case_of(bench, model, batch, f"{name}: refused, missing", limit=1), "")
    command = [runner.tool, "plan", model, "--batch", batch, "--mesh", f"dp={WORKERS}", "--strategy",
               written(folder, name, text), "--memory-limit-MB", limit]
    run = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=runner.timeout)
    missing = re.search(r"([\d.]+) MiB more than", run.stderr)
    if run.returncode == 0 or not missing:
        figure.note(f"the plan takes it: {run.stderr.strip()}")
    else:
        figure.add_ours({"mib": float(missing[1])})
    return figure


def trained(bench, runner, folder, model, batch, limit, steps, name, text):
    peaks = [Figure(case_of(bench, model, batch, f"{name}: peak of worker {i}", lower_is_better=True, limit=limit), "")
             for i in range(WORKERS)]
    plans = [Figure(Case(bench.name, "MiB", {"own plan": FROM_PLAN}, f"{model} {name}: worker {i}", batch, workers=WORKERS,
                         threads=1, field="mib", lower_is_better=True), "own plan") for i in range(WORKERS)]
    loss = Figure(Case(bench.name, "", {"first step": 1}, f"{model} {name}: loss of step {steps}", batch, workers=WORKERS,
                       threads=1, field="loss", lower_is_better=True), "first step")
    figures = [*peaks, *plans, loss]
    try:
        with contextlib.ExitStack() as groups:
            folders = [groups.enter_context(memory_group(i, limit)) for i in range(WORKERS)]
            line = train(runner, folder, folders, model, batch, steps, written(folder, name, text))
            used = [peak_of(group) for group in folders]
    except OSError as why:
        for figure in figures:
            figure.skipped = True
            figure.note(f"no control group can be made: {why}")
        return figures
    except Failed as failure:
        for figure in figures:
            figure.note(str(failure))
        return figures
    for i in range(WORKERS):
        peaks[i].add_ours({"mib": used[i]})
        plans[i].add_ours({"mib": line["peaks_mib"][i]})
        plans[i].add_peer("", {"mib": line["plans_mib"][i]})
    loss.add_ours({"loss": line["loss"]})
    loss.add_peer("", {"loss": line["first_loss"]})
    print(f"{bench.name} {model} {name}: {line['best_s']:.3g} s a step", file=sys.stderr, flush=True)
    return figures


def train(runner, folder, groups, model, batch, steps, strategy):
    """Each worker enters its group and becomes the program."""
    enter = pathlib.Path(folder, "enter.sh")
    enter.write_text("#!/bin/sh\n" + "".join(f'[ "$PADDLE_TRAINER_ID" = {i} ] && echo $$ > {group}/cgroup.procs\n'
                                             for i, group in enumerate(groups)) + 'exec "$@"\n')
    enter.chmod(0o755)
    command = [runner.tool.with_name("fleetrun"), f"--nproc_per_node={WORKERS}", f"--log_dir={folder}/log", enter,
               runner.tool, "bench", model, "--batch", batch, "--threads", 1, "--warmup", 1, "--steps", steps - 1, "--json",
               "--strategy", strategy]
    return runner.figures(command, runner.cores(None), 1)


@contextlib.contextmanager
def memory_group(number, mib):
    """The folder of a new control group with this much memory. OSError where none can be made."""
    version, top = hierarchy(pathlib.Path("/"), "memory")
    folder = top / f"fleetx-bench-{os.getpid()}-{number}"
    if version == 2:
        (top / "cgroup.subtree_control").write_text("+memory")
    folder.mkdir()
    try:
        (folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")).write_text(str(mib * MIB))
        yield folder
    finally:
        folder.rmdir()


def peak_of(group):
    """MiB."""
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        if (group / name).exists():
            return int((group / name).read_text()) / MIB
    raise Failed(f"{group} does not tell its peak")
