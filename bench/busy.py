"""Two threads against one on two cores that others use, too: beside competitors, and within a CPU quota."""
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys

from report import Figure
from runner import PEERS, ROOT, SETUP, Failed, settings
from suite import Case

QUOTA, PERIOD_US = 1.5, 100_000
NEIGHBOURS = {"idle": [], "1 loop": ["loop"], "2 loops": ["loop", "loop"], "1,000 wake-ups/s": ["wakes"]}
IN_CGROUP = f"cgroup of {QUOTA:g} cores"


@dataclasses.dataclass(frozen=True)
class BusyCase(Case):
    who: str = "fleetx"
    beside: str = ""

    def __str__(self):
        return f"{self.bench} {self.who} {self.model} batch {self.batch}, {self.beside}"


class BusyFigure(Figure):
    """The time of two threads ('ours') against that of one, or of an earlier version."""

    def extra(self):
        return {"who": self.case.who, "beside": self.case.beside}


def measure_busy(bench, runner, options):
    """Lists of figures, one list per network and neighbour."""
    rounds = 3 if options.quick else bench.rounds
    torch = None if options.quick else python_with_torch(runner, options)
    if options.quick:
        print(f"{bench.name}: PyTorch is left out of a quick run", file=sys.stderr, flush=True)
    elif torch is None:
        print(f"{bench.name}: PyTorch is not measured: it is not there ({SETUP} installs it)", file=sys.stderr, flush=True)
    for beside in [*NEIGHBOURS, IN_CGROUP]:
        try:
            with Surroundings(runner, beside) as around:
                for model, batch, steps in bench.sizes:
                    if options.quick and model != "tiny-mlp":
                        steps = steps * 2 // 5
                    yield measure_here(bench, around, (model, batch, steps), rounds, torch, options.before)
        except (OSError, Failed) as error:
            print(f"{bench.name}: {beside} is not measured: {error}", file=sys.stderr, flush=True)


def measure_here(bench, around, size, rounds, torch, before):
    model, batch, steps = size
    programs = {"fleetx": [around.runner.tool, "bench", model, "--json"]}
    if before and around.beside == "idle":
        programs["before"] = [before, "bench", model, "--json"]
    if torch:
        programs["torch"] = [torch, PEERS / "torch_peer.py", model]
    figures = {}

    def figure(who, peer, bound, field="total_s"):
        case = BusyCase(bench.name, "s", {peer: bound}, model, batch, threads=2, warmup=max(1, steps // 20),
                        steps=steps, field=field, lower_is_better=True, who=who, beside=around.beside)
        return figures.setdefault((who, peer), BusyFigure(case, peer, rounds=rounds))

    for who in programs:
        # PyTorch's figures are there to compare with; nothing is asked of an idle machine but that it stays as it was.
        if who != "before":
            figure(who, "1 thread", bench.limit if who == "fleetx" and around.beside != "idle" else None)
    if "before" in programs:
        figure("fleetx", "before", bench.unchanged, "best_s")  # of a step; earlier versions do not print the total
    for number in range(1, rounds + 1):
        for who, program in programs.items():
            for threads in (2,) if who == "before" else (1, 2):
                run_once(figures, around, who, program, threads, f"round {number}/{rounds}")
    return [*figures.values()]


def run_once(figures, around, who, program, threads, when):
    case = dataclasses.replace(next(iter(figures.values())).case, who=who, threads=threads)
    if who == "torch":  # beside a loop all steps of the tiny network would take it hours
        case = dataclasses.replace(case, steps=min(case.steps, 1001))
    try:
        line = around.run(program + settings(case), threads)
    except Failed as failure:
        print(f"{when}  {case}: {threads} threads failed: {failure}", file=sys.stderr, flush=True)
        for (name, _), figure in figures.items():
            if name == who:
                figure.note(f"{who}: {failure}")
        return
    field = "total_s" if "total_s" in line else "best_s"
    print(f"{when}  {case}, {threads} thread{'s' * (threads > 1)}: {line[field]:.4g} s "
          f"({'best step' if field == 'best_s' else f'{case.steps} steps'})", file=sys.stderr, flush=True)
    for (name, peer), figure in figures.items():
        figure.disturbed |= not NEIGHBOURS.get(around.beside) and line["others"] > 0.1
        if name == who and threads == 2:
            figure.add_ours(line)
        elif name == who and peer == "1 thread":
            figure.add_peer("", line)
        elif who == "before" and peer == "before":
            figure.add_peer("", line)


class Surroundings:
    """Two cores with competitors, or a control group with a quota. Whatever happens, both are gone afterwards."""

    def __init__(self, runner, beside):
        self.runner, self.beside, self.cgroup = runner, beside, None
        self.cores = runner.cores(2)
        self.cleanup = contextlib.ExitStack()

    def __enter__(self):
        if self.beside == IN_CGROUP:
            self.cgroup = self.cleanup.enter_context(cgroup(QUOTA))
        return self

    def __exit__(self, *_):
        self.cleanup.close()

    def run(self, command, threads):
        """The line of figures of a program. Competitors live as long as it does, at most as long as it may."""
        competitors = []
        try:
            for kind in NEIGHBOURS.get(self.beside, []):
                competitors.append(subprocess.Popen(
                    [sys.executable, ROOT / "bench/competitor.py", kind, str(self.runner.timeout)],
                    preexec_fn=lambda: os.sched_setaffinity(0, self.cores)))
            line = self.runner.figures(command, self.cores, threads, self.cgroup)
            if any(competitor.poll() is not None for competitor in competitors):
                raise Failed("a competitor ended too soon")
            return line
        finally:
            for competitor in competitors:
                competitor.kill()
                competitor.wait()


def python_with_torch(runner, options):
    """An interpreter that has PyTorch: that of --venv, or else Debian's."""
    for python in [runner.python] + [pathlib.Path("/usr/bin/python3")] * (options.venv is None):
        look = "import importlib.util as u, sys; sys.exit(not u.find_spec('torch'))"
        if python.exists() and not subprocess.run([python, "-c", look], capture_output=True, check=False).returncode:
            return python
    return None


@contextlib.contextmanager
def cgroup(cores, root=pathlib.Path("/")):
    """The file that takes processes into a new control group with this quota. OSError where none can be made."""
    version, top = hierarchy(root)
    folder = top / f"fleetx-bench-{os.getpid()}"
    if version == 2:
        (top / "cgroup.subtree_control").write_text("+cpu")
    folder.mkdir()
    try:
        if version == 2:
            (folder / "cpu.max").write_text(f"{int(cores * PERIOD_US)} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(int(cores * PERIOD_US)))
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


def hierarchy(root, controller="cpu"):
    """The version of the hierarchy that limits CPU time (or memory), and where it is mounted."""
    for line in (root / "proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        folder = root / fields[4].lstrip("/")
        if kind == "cgroup" and controller in options:
            return 1, folder
        if kind == "cgroup2" and controller in (folder / "cgroup.controllers").read_text().split():
            return 2, folder
    raise OSError(f"no control groups for {'CPU time' if controller == 'cpu' else controller} are mounted")
