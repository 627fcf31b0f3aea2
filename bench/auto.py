"""strategy.auto against the best of all combinations, each of which is tried."""
import itertools
import json
import pathlib
import sys
import tempfile
from dataclasses import dataclass

from hosts import CannotMakeHosts
from predict import LINK, Job, StepCase, calibrated, plan, with_network
from report import Figure
from runner import Failed

PEER = "best of all"
ALLOWED = ["amp", "fp16_allreduce"]
SHARDED = 64  # by so many neighbours at most, or by 8
AGAIN = 3  # the fastest are measured again, with what auto has chosen, as often as that in turn


@dataclass
class Setting:
    """A job. Workers are measured here or over a link of 1 Gbit/s, or only predicted."""
    model: str
    batch: int
    job: str = "2"
    limit: int = 0  # MiB of a worker; 0: what there is
    predicted: bool = False
    steps: int = 3


SETTINGS = {"fast": Setting("resnet50", 2), "slow": Setting("mlp", 64, LINK, steps=100),
            "memory": Setting("bert-base", 1, limit=1200), "many": Setting("bert-large", 4, "256", predicted=True)}
QUICK = {"fast": Setting("mlp", 64, steps=20), "many": Setting("mlp", 64, "64", predicted=True)}
CLUSTER = """name: hosts of 8 ranks, 25 Gbit/s
cores: 8
ranks: 8
memory_GiB: 128
compute: {f32_GFLOPS: 8000, half_GFLOPS: 24000, memory_GBps: 800, op_us: 5, overlap: 0.9}
links:
  host: {GBps: 20, latency_us: 10}
  network: {GBps: 2.8, latency_us: 30}
"""


def measure_auto(bench, runner, options):
    """A figure per setting: seconds of a step of what auto chooses, and of the fastest of all that fit."""
    settings = {name: SETTINGS[name] for name in options.settings} if options.settings else QUICK if options.quick else SETTINGS
    with tempfile.TemporaryDirectory() as folder:
        machine = None
        for name, setting in settings.items():
            place = pathlib.Path(folder, "place.yaml")
            if setting.predicted:
                place.write_text(CLUSTER)
            else:
                machine = machine or options.machine or calibrated(runner, folder, options.quick)
                text = machine.read_text()
                place.write_text(with_network(text) if setting.job == LINK else text)
            yield [compared(bench, runner, options, folder, place, name, setting)]


def compared(bench, runner, options, folder, machine, name, setting):
    case = StepCase(bench.name, "s", {PEER: 1.05}, f"{name}: {setting.model}", setting.batch,
                    workers=2 if setting.job == LINK else int(setting.job), threads=1, warmup=2, steps=setting.steps,
                    field="best_s", lower_is_better=True, what=setting.model, job=setting.job)
    figure = Figure(case, PEER)
    texts = {text: write(folder, i, text) for i, text in enumerate(combinations(case.workers))}
    limit = setting.limit or None
    auto = write(folder, "auto", f'auto: true auto_configs {{ machine: "{machine}" batch_size: {setting.batch} ' +
                 " ".join(f'allow: "{name}"' for name in ALLOWED) + f" memory_limit_MB: {setting.limit} }}")
    try:
        if setting.predicted:
            run = lambda file: predicted(runner, case, machine, file)  # noqa: E731
            search(name, figure, run, texts, auto, limit, rounds=0)
        else:
            with Job(bench, runner, options, setting.job) as job:
                search(name, figure, lambda file: job.train(case, file), texts, auto, limit, rounds=AGAIN)
    except (CannotMakeHosts, Failed) as why:
        figure.skipped = isinstance(why, CannotMakeHosts)
        figure.note(str(why))
    return figure


def combinations(workers):
    """Of strategies, as text: one or none of what each offers. Buckets have the size that they have by themselves."""
    degrees = [workers] * (workers <= SHARDED) + [n for n in (8, SHARDED) if n < workers and workers % n == 0]
    sharding = [f"sharding: true sharding_configs {{ stage: {stage} }}" +
                f" hybrid_configs {{ sharding_degree: {degree} }}" * (degree < workers)
                for degree in degrees for stage in (1, 2, 3)]
    choices = [["", "recompute: true"], ["", "amp: true"], ["", "fp16_allreduce: true"], ["", *sharding]]
    return [" ".join(filter(None, parts)) for parts in itertools.product(*choices)]


def write(folder, name, text):
    file = pathlib.Path(folder, f"{name}.prototxt")
    file.write_text(text)
    return file


def predicted(runner, case, machine, file):
    line = plan(runner.tool, case.what, case.batch, case.workers, machine, 8, ["--strategy", file])
    return {"best_s": line["step_s"], "plans_mib": [line["peak_mib"]], "others": 0}


def search(name, figure, run, texts, auto, limit, rounds):
    """Tries everything that fits; then auto and the fastest of all in turn. What auto cannot find is not there either."""
    seconds = {}
    for text, file in texts.items():
        try:
            line = run(file)
        except Failed as why:
            say(name, text, f"refused: {why}")
            continue
        fits = not limit or max(line["plans_mib"]) <= limit
        say(name, text, f"{line['best_s']:.4g} s, {max(line['plans_mib']):.0f} MiB" + " (too much)" * (not fits))
        if fits:
            seconds[text] = line["best_s"]
    fastest = sorted(seconds, key=seconds.get)[:3]
    of_auto = []
    for _ in range(max(1, rounds)):
        line = run(auto)
        of_auto.append(line["best_s"])
        figure.disturbed |= line["others"] > 0.1
        for text in fastest if rounds else []:
            seconds[text] = min(seconds[text], run(texts[text])["best_s"])
    for text in fastest:
        figure.add_peer(text or "plain", {figure.case.field: seconds[text]})
    figure.add_ours({figure.case.field: min(of_auto)})
    say(name, "auto", f"{min(of_auto):.4g} s; {json.dumps(figure.modes)}")


def say(name, text, what):
    print(f"auto {name}, {text or 'plain'}: {what}", file=sys.stderr, flush=True)
