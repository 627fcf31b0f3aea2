"""What sharding saves and costs: BERT-base by workers of one host, against our own plain data parallel and PyTorch's ways."""
import dataclasses
import functools
import pathlib
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import PEERS, Failed, settings
from suite import Case

MODEL, PLAIN, PLAN = "bert-base", "own data parallel", "own plan"
ZERO, FSDP = "torch ZeroRedundancyOptimizer", "torch FSDP2"
FLAGS = {ZERO: "--zero", FSDP: "--fsdp"}
SPEED = {1: {PLAIN: 0.95, FSDP: 1.6}, 2: {PLAIN: 0.95, FSDP: 1.6}, 3: {PLAIN: 0.85, FSDP: 1.6}}  # stage -> peer -> at least
FROM_PLAN = 1.05  # of what the plan says
MEMORY = {2: {1: {PLAIN: None, ZERO: 1, PLAN: FROM_PLAN}, 2: {PLAIN: None, PLAN: FROM_PLAN},
              3: {PLAIN: 0.72, FSDP: 1, PLAN: FROM_PLAN}},
          4: {1: {PLAIN: None, PLAN: FROM_PLAN}, 2: {PLAIN: None, PLAN: FROM_PLAN}, 3: {PLAIN: 0.50, PLAN: FROM_PLAN}}}


def measure_sharding(bench, runner, options):
    """Speed with a core for each of two workers; memory, which does not depend on cores, with 2 and 4."""
    rounds = 1 if options.quick else bench.rounds
    with tempfile.TemporaryDirectory() as folder:
        case = Case(bench.name, "tokens/s", {}, MODEL, 2 if options.quick else 8, workers=2, threads=1,
                    steps=1 if options.quick else 3)
        yield compare(runner, case, folder, rounds, SPEED)
        for workers, bounds in MEMORY.items():
            case = Case(bench.name, "MiB", {}, MODEL, 2, workers=workers, threads=1, steps=1, field="peak_mib",
                        lower_is_better=True)
            yield compare(runner, case, folder, 1, bounds)


def compare(runner, case, folder, rounds, bounds):
    """`bounds`: stage -> peer -> bound on the ratio."""
    lines, comparisons = {}, []
    players = {PLAIN: functools.partial(train, runner, case, folder, 0, lines)}
    for stage, peers in bounds.items():
        name = f"stage {stage}"
        players[name] = functools.partial(train, runner, case, folder, stage, lines)
        for peer, bound in peers.items():
            player = f"{name}: {peer}" if peer == PLAN else peer
            if peer == PLAN:
                players[player] = functools.partial(planned, lines, stage)
            elif peer in FLAGS:
                players[player] = functools.partial(train_torch, runner, case, FLAGS[peer])
            about = dataclasses.replace(case, asked={peer: bound}, model=f"{case.model} {name}")
            comparisons.append(Comparison(Figure(about, peer, rounds=rounds), name, {player: ""}))
    return in_turn(str(case), players, comparisons, rounds)


def train(runner, case, folder, stage, lines):
    text = pathlib.Path(folder, f"stage{stage}.prototxt")
    text.write_text(f"sharding: true\nsharding_configs {{ stage: {stage} }}\n" if stage else "")
    command = [runner.tool.with_name("fleetrun"), f"--nproc_per_node={case.workers}", f"--log_dir={folder}/log",
               runner.tool, "bench", case.model, "--json", "--strategy", text]
    lines[stage] = runner.figures(command + settings(case), runner.cores(case.cores if case.workers == 2 else None), 1)
    return lines[stage]


def train_torch(runner, case, flag):
    if missing := runner.missing("torch"):
        raise Failed(missing)
    command = [runner.python, PEERS / "torch_ddp_peer.py", case.model, "--workers", case.workers, flag]
    return runner.figures(command + settings(case), runner.cores(case.cores), 1)


def planned(lines, stage):
    """The plan of the run before, as if it were a run."""
    return {**lines[stage], "peak_mib": lines[stage]["plan_mib"] + lines[stage]["process_mib"]}
