"""Predictions of a step: against what is measured here, and against tables that others have published."""
import json
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
MERGED = 4  # batches between two updates of gradient_merge, and steps that are measured
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
MODELS = {"resnet50": 8, "bert-base": 4, "vgg16": 4, "wide-deep": 512}


def measure_predictions(bench, runner, options):
    """One figure per model, combination and job; then the median and the worst of all."""
    models = {"mlp": 64} if options.quick else MODELS
    combinations = COMBINATIONS[:2] if options.quick else COMBINATIONS
    errors, memory = [], []
    with tempfile.TemporaryDirectory() as folder:
        machine = pathlib.Path(folder, "machine.yaml")
        calibration = ["--models", "mlp:64", "--seconds", 5] if options.quick else []
        runner.together([{"command": [runner.tool, "calibrate", *calibration, machine]}])
        for model, batch in models.items():
            for parts in combinations:
                text = strategy(folder, parts)
                for workers in (1, 2) if options.quick else (1, 2, 4):
                    figure = Figure(step_case(bench, model, batch, workers, parts), "measured")
                    try:
                        measured = train(runner, model, batch, workers, text)
                        predicted = plan(runner.tool, model, batch, workers, machine, workers, ["--strategy", text])
                    except Failed as failure:
                        figure.note(str(failure))
                        yield [figure]
                        continue
                    yield [compare(figure, predicted["step_s"], measured["mean_s"], measured["others"], errors)]
                    memory.append(abs(predicted["peak_mib"] / measured["peak_mib"] - 1))
        yield from over_a_link(bench, runner, options, models, combinations, folder, machine, errors)
    if errors:
        yield [summary(bench, "median error of time", statistics.median(errors), 10),
               summary(bench, "worst error of time", max(errors), 25)]
    if memory:
        yield [summary(bench, "worst error of memory", 100 * max(memory), 5)]


def over_a_link(bench, runner, options, models, combinations, folder, machine, errors):
    """The same by two hosts with a worker each."""
    try:
        with Hosts(2, options.congestion) as hosts:
            hosts.limit(RATE)
            net = Net(bench, runner, options, hosts)
            slow = pathlib.Path(folder, "link.yaml")
            slow.write_text(with_network(machine.read_text(), 0.125 * TCP, 100))
            for model, batch in models.items():
                for parts in combinations:
                    text = strategy(folder, parts)
                    case = step_case(bench, model, batch, 2, (*parts, f"at {RATE}"))
                    figure = Figure(case, "measured")
                    try:
                        line, others = net.train("fleetx", case, model, ["--strategy", text])
                        predicted = plan(runner.tool, model, batch, 2, slow, 1, ["--strategy", text])
                    except Failed as failure:
                        net.hosts.end_processes()
                        figure.note(str(failure))
                        yield [figure]
                        continue
                    yield [compare(figure, predicted["step_s"], line["total_s"] / case.steps, others, errors)]
    except CannotMakeHosts as why:
        print(f"{bench.name}: no link is measured: {why}", file=sys.stderr, flush=True)
        yield [Figure(step_case(bench, "mlp", 64, 2, (f"at {RATE}",)), "", skipped=True, notes=[str(why)])]


def step_case(bench, model, batch, workers, parts):
    name = " + ".join([model, *parts])
    return Case(bench.name, "s", {"measured": None}, name, batch, workers=workers, threads=1, warmup=2, steps=2 * MERGED)


def strategy(folder, parts):
    file = pathlib.Path(folder, "-".join(part.replace(" ", "_") for part in parts) + ".prototxt")
    file.write_text("\n".join(PARTS[part] for part in parts))
    return file


def train(runner, model, batch, workers, text):
    """A line of `fleetx bench`, with the mean of its steps: some strategies do not do the same in each."""
    steps = 2 * MERGED
    command = [runner.tool, "bench", model, "--batch", batch, "--steps", steps, "--json", "--strategy", text]
    if workers > 1:
        command = [runner.tool.parent / "fleetrun", f"--nproc_per_node={workers}", "--log_dir", text.parent / "log", *command]
    line = runner.figures(command, runner.cores(None), None)
    return {**line, "mean_s": line["total_s"] / steps}


def plan(tool, model, batch, workers, machine, ranks_per_host, flags):
    command = [tool, "plan", model, "--batch", batch, "--mesh", f"dp={workers}", "--machines", machine,
               "--ranks-per-host", ranks_per_host, "--json", *flags]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
    if run.returncode:
        raise Failed(run.stderr.strip().splitlines()[-1])
    return json.loads(run.stdout)


def with_network(description, gigabytes, microseconds):
    """The description of a host with half of the cores, and another network."""
    lines = [line for line in description.splitlines() if not line.startswith("  network:")]
    cores = next(i for i, line in enumerate(lines) if line.startswith("cores:"))
    lines.insert(cores + 1, f"cores_per_rank: {max(1, int(lines[cores].split()[1]) // 2)}")
    place = next(i for i, line in enumerate(lines) if line.startswith("  host:"))
    lines.insert(place + 1, f"  network: {{GBps: {gigabytes}, latency_us: {microseconds}}}")
    return "\n".join(lines) + "\n"


def compare(figure, predicted, measured, others, errors):
    """Ours is what was predicted."""
    figure.add_ours({figure.case.field: predicted})
    figure.add_peer("", {figure.case.field: measured})
    figure.disturbed = others > 0.1
    errors.append(100 * abs(predicted / measured - 1))
    return figure


def summary(bench, what, error, limit):
    figure = Figure(Case(bench.name, "%", {}, what, lower_is_better=True, limit=limit), "")
    figure.add_ours({figure.case.field: max(error, 1e-3)})
    return figure


# ---- published tables ----

# Eight V100 with NVLink in a host, 100 Gbit/s InfiniBand between hosts: one set of figures for all rows. Rates of
# computation follow from the figure of one GPU. Reached: NVLink about a third of its 150 GB/s in a ring, the network
# 7.2 of 12.5 GB/s in a ring over all GPUs; each tensor costs a launch and a copy; a GPU whose neighbours compute, too,
# has CROWDED of its speed. These five (rates reached, cost of a tensor, CROWDED) no data sheet has: they were fitted to
# the tables themselves, once for all rows.
CROWDED = 0.965
V100 = """name: 8 x V100, 100 Gbit/s
cores: 8
cores_per_rank: 1
ranks: 8
memory_GiB: 256
compute: {{f32_GFLOPS: {gflops}, half_GFLOPS: {gflops}, memory_GBps: {gigabytes}, overlap: 1}}
links:
  host: {{GBps: 50, latency_us: 20, tensor_us: 60, shared: false}}
  network: {{GBps: 7.2, latency_us: 30, tensor_us: 60, ring: true}}
"""
BASE = (100_000.0, 6_000.0)  # of a host, before it is fitted to one GPU

# Images per second of 1, 8, 16 and 32 GPUs, by batch of a GPU.
PUBLISHED = {
    ("resnet50", "f32"): {32: (335.43, 2488.49, 4629.71, 9093.41), 64: (353.38, 2643.75, 5325.44, 10536.83),
                          128: (368.11, 2797.31, 5635.98, 11261.72)},
    ("resnet50", "amp"): {32: (740.01, 4467.82, 8628.19, 16970.01), 64: (919.95, 6148.98, 12071.29, 23682.78),
                          128: (1018.3, 7324.31, 14342.03, 28397.43), 256: (1096.5, 8166.11, 16189.79, 32366.39)},
    ("vgg16", "f32"): {32: (252.68, 1888.20, 2873.18, 5548.48), 64: (261.33, 1980.04, 3900.12, 7617.47),
                       128: (266.24, 2027.06, 4028.78, 7848.70)},
    ("vgg16", "amp"): {32: (407.69, 3332.17, 5136.50, 9544.81), 64: (468.51, 3708.32, 7112.45, 14013.01),
                       128: (512.02, 3892.58, 7618.34, 15219.57), 256: (439.47, 3409.96, 6779.20, 13443.23)},
}


def measure_published(bench, runner, options):
    """A figure per row and number of GPUs: images/s predicted and published; then the worst error."""
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for (model, kind), rows in PUBLISHED.items():
            # Gradients of amp travel in 16 bits there.
            parts = () if kind == "f32" else ("amp", "fp16_allreduce")
            text = strategy(folder, parts)
            for batch, (one, *many) in list(rows.items())[:1] if options.quick else rows.items():
                machine = pathlib.Path(folder, "v100.yaml")
                machine.write_text(V100.format(gflops=BASE[0], gigabytes=BASE[1]))
                alone = plan(runner.tool, model, batch, 1, machine, 1, ["--strategy", text])["step_s"]
                faster = CROWDED * alone / (batch / one)
                machine.write_text(V100.format(gflops=BASE[0] * faster, gigabytes=BASE[1] * faster))
                for workers, published in zip((8, 16, 32), many):
                    case = Case(bench.name, "images/s", {"published": None}, f"{model} {kind}", batch, workers=workers)
                    figure = Figure(case, "published")
                    step = plan(runner.tool, model, batch, workers, machine, 8, ["--strategy", text])["step_s"]
                    yield [compare(figure, batch * workers / step, published, 0, errors)]
    yield [summary(bench, "worst error", max(errors), 10)]
