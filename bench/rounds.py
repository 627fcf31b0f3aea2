"""Runs ours and the peers in turn and collects their figures."""
import functools
import sys

from auto import measure_auto
from busy import measure_busy
from contest import Comparison, failed, in_turn
from does_not_fit import measure_does_not_fit
from learning import measure_learning
from many import measure_many
from movielens import measure_auc
from net import measure_net
from own_programs import measure_selection, measure_tables
from pipeline import measure_pipeline
from predict import measure_predictions
from predict_tables import measure_published
from ragged import measure_ragged
from report import Figure
from runner import Failed
from servers import measure_ps
from sharding import measure_sharding
from strategies import measure_strategies
from suite import AllReduce, Busy, Listed, Net
from tokenizer import measure_tokenizer
from translation import measure_translation
from variants import measure_amp, measure_recompute

LISTED = {"amp": measure_amp, "recompute": measure_recompute, "strategies": measure_strategies,
          "sharding": measure_sharding, "pipeline": measure_pipeline, "does-not-fit": measure_does_not_fit,
          "learning": measure_learning,
          "dgc-selection": measure_selection, "ps": measure_ps, "ps-table": measure_tables, "ps-auc": measure_auc,
          "ps-many": measure_many, "tokenizer": measure_tokenizer, "ragged": measure_ragged,
          "transformer-bleu": measure_translation,
          "auto": measure_auto, "predict": measure_predictions, "predict-tables": measure_published}


def measure(bench, runner, options):
    """Lists of figures, as they come."""
    rounds = 1 if options.quick else bench.rounds
    if isinstance(bench, Busy):
        yield from measure_busy(bench, runner, options)
        return
    if isinstance(bench, Net):
        yield from measure_net(bench, runner, options)
        return
    if isinstance(bench, Listed):
        yield from LISTED[bench.name](bench, runner, options)
        return
    if isinstance(bench, AllReduce):
        for workers in bench.workers:
            yield measure_allreduce(bench, workers, runner, rounds)
        return
    for case in bench.cases(options.batch, options.threads, options.quick):
        yield measure_case(case, runner, rounds)


def modes_of(case, peer):
    if peer == "paddle":
        return ["static"]
    if peer not in ("torch", "torch DDP"):
        return [""]
    images = ["channels_last"] * (case.model in ("resnet50", "vgg16"))
    return ["default"] if case.model == "sgemm" else ["default", *images, "compile"]


def measure_case(case, runner, rounds):
    """One figure per peer."""
    players = {"fleetx": functools.partial(runner.ours, case)}
    comparisons = []
    for peer in case.asked or [""]:
        figure = Figure(case, peer, rounds=rounds)
        modes = {}
        missing = peer and runner.missing(peer)
        if missing:
            figure.note(missing)
        elif peer:
            modes = {f"{peer} {mode}".strip(): mode for mode in modes_of(case, peer)}
        players |= {name: functools.partial(runner.peer, case, peer, mode) for name, mode in modes.items()}
        comparisons.append(Comparison(figure, "fleetx", modes))
    return in_turn(str(case), players, comparisons, rounds)


def measure_allreduce(bench, workers, runner, rounds):
    """One figure per size and peer. A run has all of them, so that they are measured in turn here, too."""
    figures = [Figure(case, peer, rounds=rounds) for case in bench.cases(workers) for peer in case.asked]
    for number in range(1, rounds + 1):
        when, what = f"round {number}/{rounds}", f"{bench.name}, {workers} workers"
        try:
            rates, others = runner.allreduce(workers)
        except Failed as failure:
            failed(what, when, "bench_allreduce", failure, figures)
            continue
        print(f"{when}  {what}: measured", file=sys.stderr, flush=True)
        for figure in figures:
            of_size = rates.get(bench.sizes[figure.case.model], {})
            figure.disturbed |= others > 0.1
            if "ours" in of_size:
                figure.add_ours({figure.case.field: of_size["ours"]})
            if figure.peer in of_size:
                figure.add_peer("", {figure.case.field: of_size[figure.peer]})
            else:
                figure.note(f"no figure of {figure.peer}")
    return figures
