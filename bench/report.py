"""One figure against one peer: as a line of JSON and as a row of a table."""
import datetime
import json
from dataclasses import dataclass, field

from machine import machine_name
from suite import Case

HOPELESS = 0.7  # as fast as the best mode, in one round


@dataclass
class Figure:
    case: Case
    peer: str  # its name; empty: none to compare with
    ours: float = None
    gflops: float = None  # ours
    isa: str = ""
    modes: dict = field(default_factory=dict)  # of the peer: mode -> best value so far
    version: str = ""
    rounds: int = 1
    disturbed: bool = False  # other programs were busy on the same cores
    notes: list = field(default_factory=list)  # what went wrong
    skipped: bool = False  # this machine has no place to measure it

    def add_ours(self, line):
        value = line[self.case.field]
        if self.ours is None or self.case.better(value, self.ours):
            self.ours, self.gflops = value, line.get("gflops")
        self.isa = line.get("isa", "")

    def add_peer(self, mode, line):
        value = line[self.case.field]
        if mode not in self.modes or self.case.better(value, self.modes[mode]):
            self.modes[mode] = value
        self.version = line.get("version", "")

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def worth_repeating(self, mode):
        """Whether this mode may still become the best one."""
        ratio = self.modes[mode] / self.modes[self.mode]
        return ratio > HOPELESS if not self.case.lower_is_better else 1 / ratio > HOPELESS

    @property
    def mode(self):
        """The best one, or None."""
        best = min if self.case.lower_is_better else max
        return best(self.modes, key=self.modes.get, default=None)

    @property
    def ratio(self):
        return self.ours / self.modes[self.mode] if self.ours and self.modes else None

    @property
    def bound(self):
        return self.case.ratio_asked(self.peer, self.isa)

    @property
    def holds(self):
        """True, False, or None: not measured."""
        if self.case.limit is not None:
            return self.ours and (self.ours < self.case.limit) == self.case.lower_is_better
        return None if self.ratio is None or self.bound is None else self.case.holds(self.ratio, self.bound)

    @property
    def peer_name(self):
        return " ".join(filter(None, [self.peer, self.version.split("+")[0], self.mode]))

    @property
    def asked(self):
        if self.case.limit is not None:
            return f"{'<' if self.case.lower_is_better else '>='} {self.case.limit:g} {self.case.unit}"
        return self.bound and f"{'<=' if self.case.lower_is_better else '>='} {self.bound:g}"

    @property
    def verdict(self):
        if self.holds is not None:
            return "holds" if self.holds else "FALLS SHORT"
        if self.bound is None and self.ours and (self.ratio or not self.peer):
            return "a limit"
        return "not measured: " + "; ".join(self.notes or ["no figure"])

    def line(self):
        return json.dumps({
            "bench": self.case.bench, "ours": rounded(self.ours), "peer": rounded(self.modes.get(self.mode)),
            "peer_name": self.peer_name, "unit": self.case.unit, "ratio": rounded(self.ratio), "asked": self.asked,
            "model": self.case.model, "batch": self.case.batch, "workers": self.case.workers,
            "threads": self.case.threads, "isa": self.isa, "gflops": rounded(self.gflops), "verdict": self.verdict,
            "modes": {mode: rounded(value) for mode, value in self.modes.items() if mode},
            "disturbed": self.disturbed, "notes": self.notes, "rounds": self.rounds, **place_and_time(), **self.extra(),
        })

    def extra(self):
        """Further fields of the line."""
        return {}

    def row(self):
        return [str(self.case), f"{text(self.ours)} {self.case.unit}", text(self.modes.get(self.mode)), self.peer_name,
                text(self.ratio), self.asked or "-",
                self.verdict + " (disturbed)" * self.disturbed]


def place_and_time():
    """Where and when, for every record."""
    return {"machine": machine_name(), "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}


def rounded(x):
    return x and float(f"{x:.5g}")


def text(x):
    if not x:
        return "-"
    return f"{x:,.0f}" if x >= 1000 else f"{x:.3g}"


def table(figures):
    rows = [["bench", "ours", "peer", "", "ratio", "asked", "verdict"]] + [f.row() for f in figures]
    widths = [max(len(row[i]) for row in rows) for i in range(6)] + [0]
    right = {1, 2, 4}
    lines = ["  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                       for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
