"""Training on sequences of real lengths, against PyTorch in its ways to batch them; and how fast batches are made."""
import functools
import pathlib
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import PEERS, ROOT, Failed, figures_of
from suite import Case

JOB = ROOT / "bench/ragged_job.py"
MODELS = ("bert-base", "transformer")
ASKED = 1.5
# Peer -> what is asked of it, and its ways (bench/peers/torch_ragged.py), of which the best counts.
PEER_WAYS = {"torch padded": (ASKED, ["padded", "compile"]), "torch packed": (ASKED, ["nested", "unpadded", "packed"]),
             "torch bucketed": (None, ["bucketed"])}


def measure_ragged(bench, runner, options):
    """Lists of figures, one per network and number of threads; then those of the data path."""
    tokens, batches, passes = (512, 2, 1) if options.quick else (1024, 2, 2)
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            data = pathlib.Path(folder, f"{model}.npz")
            try:
                found = own(runner, ["write", model, data, "--tokens", tokens, "--batches", batches])
            except Failed as failure:
                figure = Figure(case_of(bench, model, 1, {}), "")
                figure.note(f"no data: {failure}")
                yield [figure]
                continue
            text = f"{model}, {found['sequences']} sequences of {found['mean_length']:.0f} tokens in the mean"
            for threads in (1,) if options.quick else (1, 2):
                figures = in_turn(f"{bench.name} {text}", *contest(bench, runner, options, model, text, data, threads, passes),
                                  1 if options.quick else bench.rounds)
                if model == "bert-base" and threads == 1:
                    yield [*figures, *data_path(bench, runner, tokens, figures[0].ours)]
                else:
                    yield figures


def contest(bench, runner, options, model, text, data, threads, passes):
    """Players, and what they are compared by."""
    players = {"fleetx": functools.partial(own, runner, ["train", model, data, "--passes", passes], threads)}
    comparisons = []
    for peer, (asked, ways) in PEER_WAYS.items():
        figure = Figure(case_of(bench, text, threads, {peer: asked}), peer, rounds=1 if options.quick else bench.rounds)
        ways = [way for way in ways if way != "compile" or not options.quick]
        if missing := runner.missing("torch"):
            figure.note(missing)
            ways = []
        players |= {f"torch {way}": functools.partial(
            run, runner, [runner.python, PEERS / "torch_ragged.py", model, data, "--way", way, "--threads", threads,
                          "--passes", passes], threads) for way in ways}
        comparisons.append(Comparison(figure, "fleetx", {f"torch {way}": way for way in ways}))
    return players, comparisons


def case_of(bench, text, threads, asked):
    return Case(bench.name, "tokens/s", asked, text, threads=threads)


def data_path(bench, runner, tokens, trained):
    """Of BERT: tokens by the CPU seconds of one thread, and what of a step is spent on making its batch."""
    figures = [Figure(Case(bench.name, unit, {}, f"bert-base, {what}", threads=1, field=field, **more), "")
               for what, unit, field, more in [
                   ("text to batches", "tokens/s", "from_text_tokens_per_s", {}),
                   ("batches of text in memory", "tokens/s", "batch_tokens_per_s", {}),
                   ("waiting for data", "% of a step", "waiting", {"lower_is_better": True, "limit": 1.0})]]
    try:
        line = own(runner, ["data", "bert-base", "--tokens", tokens])
        if trained is None:
            raise Failed("no step was measured")
        line["waiting"] = 100 * line["batch_s"] / (line["batch_s"] + tokens / trained)
        for figure in figures:
            figure.add_ours(line)
            figure.disturbed = line["others"] > 0.1
    except Failed as failure:
        for figure in figures:
            figure.note(str(failure))
    return figures


def own(runner, arguments, threads=1):
    python, env = runner.own_python
    return run(runner, [python, JOB, *arguments], threads, env)


def run(runner, command, threads, env=None):
    outs, usage = runner.together([{"command": command, "env": env or {}, "threads": threads, "cores": runner.cores(threads)}])
    return {**figures_of(outs[0]), "others": usage.of_others()}
