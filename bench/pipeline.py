"""What a pipeline costs: BERT-base in two stages on two workers, against one worker that computes all of it, times two."""
import functools
import pathlib
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import settings
from suite import ONE_WORKER, Case

MODEL, MICRO_BATCHES = "bert-base", 8
SAME = f"{ONE_WORKER}, same micro-batches"
ASKED = {SAME: 0.85, ONE_WORKER: None}


def measure_pipeline(bench, runner, options):
    """A core for each worker. One worker has the same batch: cut into the same micro-batches, and as a whole."""
    rounds = 1 if options.quick else bench.rounds
    case = Case(bench.name, "tokens/s", ASKED, MODEL, MICRO_BATCHES if options.quick else 4 * MICRO_BATCHES, workers=2, threads=1,
                steps=1 if options.quick else 3)
    ways = {"pipeline": (2, MICRO_BATCHES), SAME: (1, MICRO_BATCHES), ONE_WORKER: (1, 1)}
    with tempfile.TemporaryDirectory() as folder:
        players = {name: functools.partial(train, runner, case, folder, *way) for name, way in ways.items()}
        comparisons = [Comparison(Figure(case, peer, rounds=rounds), "pipeline", {peer: ""}) for peer in ASKED]
        yield in_turn(str(case), players, comparisons, rounds)


def train(runner, case, folder, workers, micro_batches):
    text = pathlib.Path(folder, f"{workers}x{micro_batches}.prototxt")
    text.write_text(f"pipeline: true\npipeline_configs {{ accumulate_steps: {micro_batches} }}\n"
                    f"hybrid_configs {{ pp_degree: {workers} }}\n" if micro_batches > 1 else "")
    start = [runner.tool.with_name("fleetrun"), f"--nproc_per_node={workers}", f"--log_dir={folder}/log"] * (workers > 1)
    command = start + [runner.tool, "bench", case.model, "--json", "--strategy", text]
    line = runner.figures(command + settings(case), runner.cores(case.cores), 1)
    return {**line, case.field: line[case.field] * case.workers / workers}
