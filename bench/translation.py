"""How well a small Transformer learns to translate: the same network, batches and steps as PyTorch's."""
import dataclasses
import pathlib
import statistics
import tempfile

from contest import Comparison, in_turn
from ragged import run
from report import Figure
from runner import PEERS, ROOT, Failed
from suite import Case

JOB = ROOT / "bench/translation_job.py"
GREEDY = "own greedy"
FIELDS = {"bleu": "BLEU", "right": "% right"}
# Of equals: of 758 names 37 % are right, with a standard error of 1.8 (of 37: 5 %); BLEU of their characters differs less.
EQUAL = {"bleu": 0.98, "right": 0.95}


def measure_translation(bench, runner, options):
    """Figures of greedy and of beam search, in the mean of the seeds."""
    seeds = [1] if options.quick else [1, 2, 3]
    case = Case(bench.name, "BLEU", {}, threads=1)
    comparisons = [Comparison(Figure(figure_case(case, what, search, peer), peer), "fleetx", {peer: ""})
                   for what in FIELDS for search, peer in [("greedy", "torch"), ("beam", "torch"), ("beam", GREEDY)]]
    with tempfile.TemporaryDirectory() as folder:
        try:
            size = ["--passes", 1, "--most", 100] if options.quick else ["--passes", 8]
            own(runner, "write", folder, *size)
        except Failed as failure:
            for comparison in comparisons:
                comparison.figure.note(f"no data: {failure}")
            yield [c.figure for c in comparisons]
            return
        ours = {}
        players = {"fleetx": lambda: ours.setdefault("line", mean([own(runner, "train", folder, "--seed", s) for s in seeds])),
                   GREEDY: lambda: greedy_of(ours)}
        if missing := runner.missing("torch"):
            for comparison in comparisons:
                if comparison.figure.peer == "torch":
                    comparison.figure.note(missing)
        else:
            players["torch"] = lambda: mean([peer(runner, folder, s) for s in seeds])
        yield in_turn(bench.name, players, comparisons, 1)


def figure_case(case, what, search, peer):
    asked = {peer: 1.0 if peer == GREEDY else EQUAL[what]}
    return dataclasses.replace(case, unit=FIELDS[what], asked=asked, model=f"{what}, {search}", field=f"{what}_{search}")


def own(runner, *arguments):
    python, env = runner.own_python
    return run(runner, [python, JOB, *arguments], 1, env)


def peer(runner, folder, seed):
    out = pathlib.Path(folder, "torch.json")
    trained = run(runner, [runner.python, PEERS / "torch_translation.py", folder, out, "--seed", seed], 1)
    return {**trained, **own(runner, "score", folder, out), "version": trained["version"]}


def greedy_of(ours):
    """Ours, with greedy search in the place of beams."""
    if "line" not in ours:
        raise Failed("ours failed")
    return {**ours["line"], **{f"{what}_beam": ours["line"][f"{what}_greedy"] for what in FIELDS}}


def mean(lines):
    numbers = [name for name, value in lines[0].items() if isinstance(value, (int, float))]
    # How well it learns does not depend on what others do.
    return {**lines[0], **{name: statistics.mean(line[name] for line in lines) for name in numbers}, "others": 0.0}
