"""Predictions of a step against what is measured here."""
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from hosts import CannotMakeHosts, Hosts
from net import Net
from report import Figure
from runner import Failed
from suite import Case

RATE = "1gbit"
TCP = 0.956  # of a link's rate, with packets of 1,500 bytes
LINK = "link"  # the job of two hosts with a worker each
MERGED = 2  # batches between two updates of gradient_merge
STEPS = 2 * MERGED  # that are measured, at least
# Of short steps many: the first ones touch the memory of a table at random, and the scheduler's slices are as long as a step.
SHORT = {"wide-deep": (60, 120), "mlp": (100, 400)}  # warm-up and measured
PARTS = {
    "recompute": "recompute: true",
    "amp": "amp: true",
    "fp16_allreduce": "fp16_allreduce: true",
    "gradient_merge": f"gradient_merge: true gradient_merge_configs {{ k_steps: {MERGED} }}",
    "buckets of 4 MB": "fuse_grad_size_in_MB: 4",
    "buckets of 128 MB": "fuse_grad_size_in_MB: 128",
}
COMBINATIONS = [(), *((name,) for name in PARTS), ("amp", "recompute"), ("amp", "fp16_allreduce"),
                ("recompute", "gradient_merge"), ("recompute", "fp16_allreduce"), ("amp", "gradient_merge")]
MODELS = {"resnet50": 4, "bert-base": 4, "vgg16": 4, "wide-deep": 512}
QUICK = {"mlp": 64}
JOBS = ["1", "2", "4", LINK]


def measure_predictions(bench, runner, options):
    """Two figures per model, combination and job: seconds and MiB; then the median and the worst of all."""
    models = QUICK if options.quick else MODELS
    models = {model: {**MODELS, **QUICK}[model] for model in options.models or models}
    combinations = [parts for parts in COMBINATIONS if name_of(parts) in options.combinations] if options.combinations else \
        COMBINATIONS[:2] if options.quick else COMBINATIONS
    jobs = options.jobs or (["1", "2", LINK] if options.quick else JOBS)
    earlier = measured_before(options.measured) if options.measured else None
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        machine = options.machine or calibrated(runner, folder, options.quick)
        slow = pathlib.Path(folder, "link.yaml")
        slow.write_text(with_network(machine.read_text()))
        for job in jobs:
            place = slow if job == LINK else machine
            with Job(bench, runner, options, job, earlier) as trainer:
                for model, batch in models.items():
                    for parts in combinations:
                        case = step_case(bench, model, batch, job, parts)
                        made = compared(runner, trainer, case, strategy(folder, parts), place)
                        figures += made
                        yield made
    yield from summaries(bench, figures)


def compared(runner, trainer, case, text, machine):
    """What is predicted ('ours') and what is measured: seconds of a step, MiB of the first worker."""
    time, memory = Figure(case, "measured"), Figure(memory_case(case), "measured")
    try:
        measured = trainer.train(case, text)
        predicted = plan(runner.tool, case.what, case.batch, case.workers, machine, 1 if case.job == LINK else case.workers,
                         ["--strategy", text])
    except (Failed, CannotMakeHosts) as failure:
        for figure in (time, memory):
            figure.skipped = isinstance(failure, CannotMakeHosts)
            figure.note(str(failure))
        return [time, memory]
    for figure, field, found in [(time, "step_s", measured["step_s"]), (memory, "peak_mib", measured["peak_mib"])]:
        figure.add_ours({figure.case.field: predicted[field]})
        figure.add_peer("", {figure.case.field: found})
        figure.disturbed = measured["others"] > 0.1
    print(f"{case}: {predicted['step_s']:.3g} s predicted, {measured['step_s']:.3g} s measured, "
          f"{100 * (predicted['step_s'] / measured['step_s'] - 1):+.0f} %; memory "
          f"{100 * (predicted['peak_mib'] / measured['peak_mib'] - 1):+.1f} %", file=sys.stderr, flush=True)
    return [time, memory]


class Job:
    """Trains by a number of workers here, or by two hosts; or looks up what has been measured."""

    def __init__(self, bench, runner, options, job, earlier=None):
        self.bench, self.runner, self.options, self.job, self.earlier = bench, runner, options, job, earlier
        self.hosts, self.why = None, None

    def __enter__(self):
        if self.job == LINK and self.earlier is None:
            try:
                self.hosts = Hosts(2, self.options.congestion).__enter__()
                self.hosts.limit(RATE)
            except CannotMakeHosts as why:
                self.why = why
        return self

    def __exit__(self, *_):
        if self.hosts:
            self.hosts.__exit__()

    def train(self, case, text):
        """A line of `fleetx bench`, with the median of its steps. With gradient_merge every second one updates: of an even
        number, the median lies between those that do and those that do not, and is their mean."""
        if self.why:
            raise self.why
        if self.earlier is not None:
            return self._before(case)
        line = self._over_link(case, text) if self.hosts else self._here(case, text)
        return {**line, "step_s": line["median_s"]}

    def _before(self, case):
        try:
            return {"step_s": self.earlier[case.model, case.workers, case.batch, "s"],
                    "peak_mib": self.earlier[case.model, case.workers, case.batch, "MiB"], "others": 0}
        except KeyError:
            raise Failed("it has not been measured before") from None

    def _here(self, case, text):
        command = [self.runner.tool, "bench", case.what, "--batch", case.batch, "--warmup", case.warmup, "--steps", case.steps,
                   "--json", "--strategy", text]
        if case.workers > 1:
            command = [self.runner.tool.with_name("fleetrun"), f"--nproc_per_node={case.workers}", "--log_dir",
                       text.parent / "log", *command]
        return self.runner.figures(command, self.runner.cores(None), None)

    def _over_link(self, case, text):
        try:
            line, others = Net(self.bench, self.runner, self.options, self.hosts).train(
                "fleetx", case, case.what, ["--strategy", text])
        except Failed:
            self.hosts.end_processes()
            raise
        return {**line, "others": others}


def measured_before(file):
    """Of lines that this bench has printed: the measured figures."""
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
    return {(line["model"], line["workers"], line["batch"], line["unit"]): line["peer"] for line in lines if line["peer"]}


def calibrated(runner, folder, quick):
    machine = pathlib.Path(folder, "machine.yaml")
    flags = ["--models", "mlp:64", "--seconds", 5] if quick else []
    runner.together([{"command": [runner.tool, "calibrate", *flags, machine]}])
    return machine


def name_of(parts):
    return "+".join(parts) or "plain"


@dataclasses.dataclass(frozen=True)
class StepCase(Case):
    what: str = ""  # the network
    job: str = ""  # one of JOBS


def step_case(bench, model, batch, job, parts):
    name = " + ".join([model, *parts, *[f"at {RATE}"] * (job == LINK)])
    warmup, steps = SHORT.get(model, (2, STEPS))
    return StepCase(bench.name, "s", {"measured": None}, name, batch, workers=2 if job == LINK else int(job),
                    threads=None if job == "1" else 1, warmup=warmup, steps=steps, what=model, job=job)


def memory_case(case):
    return Case(case.bench, "MiB", {"measured": None}, case.model, case.batch, workers=case.workers, threads=case.threads)


def strategy(folder, parts):
    file = pathlib.Path(folder, "-".join(part.replace(" ", "_") for part in parts) + ".prototxt")
    file.write_text("\n".join(PARTS[part] for part in parts))
    return file


def plan(tool, model, batch, workers, machine, ranks_per_host, flags):
    command = [tool, "plan", model, "--batch", batch, "--mesh", f"dp={workers}", "--machines", machine,
               "--ranks-per-host", ranks_per_host, "--json", *flags]
    # A plan is made for the threads that a worker of the job has.
    cores = len(os.sched_getaffinity(0))
    command += ["--threads", max(1, cores // workers)]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
    if run.returncode:
        raise Failed(run.stderr.strip().splitlines()[-1])
    return json.loads(run.stdout)


def with_network(description, gigabytes=0.125 * TCP, microseconds=100, overlap=0.9):
    """The description of a host with half of the cores, and another network: that between the two hosts. At this rate
    TCP takes about a tenth of a core."""
    lines = [line for line in description.splitlines() if not line.startswith("  network:")]
    cores = next(i for i, line in enumerate(lines) if line.startswith("cores:"))
    lines.insert(cores + 1, f"cores_per_rank: {max(1, int(lines[cores].split()[1]) // 2)}")
    place = next(i for i, line in enumerate(lines) if line.startswith("  host:"))
    lines.insert(place + 1, f"  network: {{GBps: {gigabytes}, latency_us: {microseconds}, overlap: {overlap}}}")
    return "\n".join(lines) + "\n"


def errors_of(figures, unit):
    """In percent."""
    return [100 * abs(f.ratio - 1) for f in figures if f.case.unit == unit and f.ratio]


def summaries(bench, figures):
    time, memory = errors_of(figures, "s"), errors_of(figures, "MiB")
    if time:
        yield [summary(bench, "median error of time", statistics.median(time), 10),
               summary(bench, "worst error of time", max(time), 25)]
    if memory:
        yield [summary(bench, "worst error of memory", max(memory), 5)]


def summary(bench, what, error, limit):
    figure = Figure(Case(bench.name, "%", {}, what, lower_is_better=True, limit=limit), "")
    figure.add_ours({figure.case.field: max(error, 1e-3)})
    return figure
