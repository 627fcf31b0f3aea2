"""What programs of ours measure by themselves: tables of a parameter server, and dgc's selection."""
import functools
import json
import re

from contest import Comparison, failed, in_turn
from report import Figure
from runner import Failed
from suite import Case

KEYS = {"unit": "M keys/s"}
# What a line of a program is called, what is asked of it, and how it is counted.
TABLE = [("sgd uniform pull", 30, KEYS), ("sgd uniform push", 30, KEYS), ("sgd zipf pull", None, KEYS),
         ("sgd zipf push", None, KEYS),
         *((f"{rule} bytes of a row by its record", 1.25, {"unit": "x", "lower_is_better": True}) for rule in ("sgd", "adagrad")),
         ("trains from disk by in memory, a third of the bytes", 0.3, {"unit": "x"})]
RPC = [("pull per server core", 8, KEYS), ("push per server core", 8, KEYS), ("pull", None, KEYS), ("push", None, KEYS)]


def measure_tables(bench, runner, options):
    rounds = 1 if options.quick else bench.rounds
    rows = 1_000_000 if options.quick else 10_000_000
    programs = {"bench_ps_table": (TABLE, table_line), "bench_ps_rpc": (RPC, rpc_line)}
    comparisons = [
        Comparison(Figure(Case(bench.name, asked={}, model=f"{name}, {rows:,} rows" + " by RPC" * (what is RPC), threads=1,
                               field=name, limit=limit, **kind), "", rounds=rounds), program)
        for program, (what, _) in programs.items() for name, limit, kind in what]
    players = {program: functools.partial(run, runner, [runner.build / "bench" / program, rows, 16, 1], line_of)
               for program, (_, line_of) in programs.items()}
    yield in_turn(f"{bench.name}, {rows:,} rows of 16 floats", players, comparisons, rounds)


def run(runner, command, line_of):
    outs, usage = runner.together([{"command": command}])
    try:
        return {**line_of(outs[0]), "others": usage.of_others()}
    except (AttributeError, KeyError, ValueError) as error:
        raise Failed(f"{command[0].name} printed something else than expected: {error}") from None


def table_line(text):
    line, rule = {}, ""
    for part in text.splitlines():
        if found := re.match(r"(\w+), .* over record ([\d.]+)", part):
            rule = found[1]
            line[f"{rule} bytes of a row by its record"] = float(found[2])
        elif found := re.match(r" +(uniform|zipf).*pull ([\d.]+) M keys/s, push ([\d.]+) M", part):
            line[f"{rule} {found[1]} pull"], line[f"{rule} {found[1]} push"] = float(found[2]), float(found[3])
        elif found := re.match(r"disk: .* ratio ([\d.e-]+)", part):
            line[TABLE[-1][0]] = float(found[1])
    return {name: line[name] for name, _, _ in TABLE}


def rpc_line(text):
    line = {}
    for what in ("pull", "push"):
        found = re.search(rf"{what} ([\d.]+) M keys/s; .*: ([\d.]+) M keys/s per core", text)
        line[what], line[f"{what} per server core"] = float(found[1]), float(found[2])
    return line


def measure_selection(bench, runner, options):
    rounds = 1 if options.quick else bench.rounds
    writes, figures = "two writes", {}
    for number in range(1, rounds + 1):
        when = f"round {number}/{rounds}"
        try:
            outs, usage = runner.together([{"command": [runner.build / "bench/bench_dgc_selection", 0.5 if options.quick else 2],
                                            "cores": runner.cores(1)}])
            lines = [json.loads(text) for text in outs[0].splitlines()]
        except Failed as failure:
            figures = figures or {0: Figure(Case(bench.name, "ms", {writes: 1.0}, field="ms"), writes)}
            failed(bench.name, when, "bench_dgc_selection", failure, figures.values())
            continue
        for line in lines:
            case = Case(bench.name, "ms", {writes: 1.0}, f"{line['k']:,} of {line['elements']:,}", threads=1, field="ms",
                        lower_is_better=True)
            figure = figures.setdefault(line["elements"], Figure(case, writes, rounds=rounds))
            figure.disturbed |= usage.of_others() > 0.1
            if abs(line["taken"] - line["k"]) > 0.1 * line["k"]:
                figure.note(f"it took {line['taken']} elements")
            else:
                figure.add_ours({"ms": 1e3 * line["select_s"]})
            figure.add_peer("", {"ms": 1e3 * line["two_writes_s"]})
    yield [*figures.values()]
