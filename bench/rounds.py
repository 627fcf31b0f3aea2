"""Runs ours and the peers in turn and collects their figures."""
import sys

from busy import measure_busy
from net import measure_net
from report import Figure
from runner import Failed
from suite import AllReduce, Busy, Net


def measure(bench, runner, options):
    """Lists of figures, as they come."""
    rounds = 1 if options.quick else bench.rounds
    if isinstance(bench, Busy):
        yield from measure_busy(bench, runner, options)
        return
    if isinstance(bench, Net):
        yield from measure_net(bench, runner, options)
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
    figures = {peer: Figure(case, peer, rounds=rounds) for peer in case.asked or [""]}
    pairs = []
    for peer, figure in figures.items():
        missing = peer and runner.missing(peer)
        if missing:
            figure.note(missing)
        elif peer:
            pairs += [(peer, mode) for mode in modes_of(case, peer)]
    for number in range(1, rounds + 1):
        when = f"round {number}/{rounds}"
        attempt(case, when, "fleetx", lambda: runner.ours(case), figures.values(), Figure.add_ours)
        for peer, mode in list(pairs):
            figure = figures[peer]
            ok = attempt(case, when, f"{peer} {mode}".strip(), lambda: runner.peer(case, peer, mode), [figure],
                         lambda f, line: f.add_peer(mode, line))
            if not ok:
                pairs.remove((peer, mode))
        pairs = [(peer, mode) for peer, mode in pairs if figures[peer].worth_repeating(mode)]
    return [*figures.values()]


def attempt(case, when, who, run, figures, add):
    try:
        line = run()
    except Failed as failure:
        failed(case, when, who, failure, figures)
        return False
    disturbed = line["others"] > 0.1 and case.unit != "MiB"
    for figure in figures:
        add(figure, line)
        figure.disturbed |= disturbed
    print(f"{when}  {case}: {who} {line[case.field]:.5g} {case.unit}" +
          disturbed * f" (others took {line['others']:.0%} of the cores)", file=sys.stderr, flush=True)
    return True


def failed(what, when, who, failure, figures):
    print(f"{when}  {what}: {who} failed: {failure}", file=sys.stderr, flush=True)
    for figure in figures:
        figure.note(f"{who}: {failure}")


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
