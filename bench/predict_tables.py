"""Predictions of images/s on many GPUs, against tables that others have published."""
import pathlib
import tempfile

from predict import errors_of, plan, strategy, summary
from report import Figure
from suite import Case

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
    figures = []
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
                    figure.add_ours({case.field: batch * workers / step})
                    figure.add_peer("", {case.field: published})
                    figures.append(figure)
                    yield [figure]
    yield [summary(bench, "worst error", max(errors_of(figures, "images/s")), 10)]
