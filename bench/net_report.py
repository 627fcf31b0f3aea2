"""Figures between hosts: their records, and a table for each row of the bench."""
from dataclasses import dataclass

from report import Figure, rounded, text

BOUND = "bound"
HEADS = {1: "all-reduce, time of a call (ratio: how many times as fast ours is)",
         2: "other collectives, time of a call (ratio: how many times as fast ours is)",
         3: "data parallel training, seconds of a step; exposed: beyond what it takes without communication",
         4: "CPU seconds of all processes, user and system, for a GB that is all-reduced (ratio: ours by theirs)"}


@dataclass
class NetFigure(Figure):
    """Against a peer, or against what the link gives."""
    congestion: str = ""
    real_time: bool = False
    seconds: float = None  # ours
    training: dict = None  # seconds: alone, wire, and the peer's
    least: float = None  # of the ratio, where what is asked follows from other figures

    def __post_init__(self):
        self.seconds_of = {}  # modes of the peer
        self.training = {}

    def add_ours(self, line):
        super().add_ours(line)
        seconds = line.get("seconds") or line["best_s"]
        self.seconds = min(seconds, self.seconds or seconds)

    def add_peer(self, mode, line):
        super().add_peer(mode, line)
        seconds = line.get("seconds") or line["best_s"]
        self.seconds_of[mode] = min(seconds, self.seconds_of.get(mode, seconds))

    def add_training(self, alone, bucket, slack):
        """What follows from the seconds of a step without communication, by who made it."""
        wire = self.case.link_seconds or 0.0
        self.training = {"alone_s": alone.get("fleetx"), "wire_s": wire, "peer_alone_s": alone.get(self.mode)}
        if self.peer == BOUND and self.seconds and alone.get("fleetx"):
            longest = max(wire, alone["fleetx"])
            items = self.ours * self.seconds
            self.add_peer("", {self.case.field: items / longest, "seconds": longest})
            # A step may take slack times the longer of both, and the last bucket, which nothing can hide.
            last = wire * bucket / self.case.bytes if wire else 0.0
            self.least = float(f"{longest / (slack * longest + last):.3g}")

    @property
    def bound(self):
        return self.least or super().bound

    @property
    def peer_seconds(self):
        return self.seconds_of.get(self.mode)

    def extra(self):
        case = self.case
        times = {name: rounded(value) for name, value in self.training.items()}
        return {"row": case.row, "what": case.what, "bytes": case.bytes, "hosts": case.hosts, "rate": case.rate,
                "ranks_per_host": case.ranks, "congestion": self.congestion,
                "real_time": self.real_time, "seconds": rounded(self.seconds),
                "peer_seconds": rounded(self.peer_seconds), **times}


def duration(seconds):
    if seconds is None:
        return "-"
    seconds = float(f"{seconds:.3g}")
    unit, scale = next(((unit, scale) for unit, scale in [("s", 1), ("ms", 1e-3)] if seconds >= scale), ("us", 1e-6))
    return f"{seconds / scale:.3g} {unit}"


def plain(seconds):
    return "-" if seconds is None else f"{seconds:.3g}"


def difference(a, b):
    return "-" if a is None or b is None else f"{a - b:.2f}"


def net_table(figures):
    """One table per row, in which a line has a case with all its peers."""
    parts = [f"{f.case.bench}: {f.verdict}" for f in figures if f.skipped]
    for row, title in HEADS.items():
        cases = {}
        for figure in figures:
            if figure.case.row == row and not figure.skipped:
                cases.setdefault(str(figure.case), {})[figure.peer] = figure
        if cases:
            groups = [*cases.values()]
            lines = training_lines(groups) if row == 3 else collective_lines(groups, row)
            parts.append(f"{title}; !: short of what is asked\n{aligned(lines)}")
    return "\n\n".join(parts)


def collective_lines(groups, row):
    peers = [p for p in dict.fromkeys(p for group in groups for p in group) if p != BOUND]
    bounds = any(BOUND in group for group in groups)
    lines = [["", "", "hosts", "link", "ours", *["of bound"] * bounds,
              *(cell for peer in peers for cell in (peer, "ratio")), "verdict"]]
    for group in groups:
        first = next(iter(group.values()))
        case = first.case
        show = (lambda f: text(f.modes.get(f.mode))) if row == 4 else (lambda f: duration(f.peer_seconds))
        cells = [text(first.ours) if row == 4 else duration(first.seconds)]
        cells += [ratio(group.get(BOUND))] * bounds
        for peer in peers:
            cells += [show(group[peer]) if peer in group else "-", ratio(group.get(peer))]
        size = case.model.removeprefix("CPU of ").split(" at ")[0].split(" ", 1)
        lines.append([*size, f"{case.hosts} x {case.ranks}", case.rate, *cells, verdict(group)])
    return lines


def training_lines(groups):
    lines = [["", "link", "ours", "alone", "exposed", "torch DDP", "alone", "exposed", "wire", "ratio", "of bound",
              "verdict"]]
    for group in groups:
        bound, ddp = group[BOUND], group["torch DDP"]
        case = bound.case
        own, others = bound.training.get("alone_s"), ddp.training.get("peer_alone_s")
        lines.append([f"{case.what} batch {case.batch}", case.rate, plain(bound.seconds), plain(own),
                      difference(bound.seconds, own), plain(ddp.peer_seconds), plain(others),
                      difference(ddp.peer_seconds, others), plain(case.link_seconds), ratio(ddp), ratio(bound),
                      verdict(group)])
    return lines


def ratio(figure):
    """Marked where it falls short."""
    return "-" if figure is None else text(figure.ratio) + "!" * (figure.holds is False)


def verdict(group):
    """Of all figures of a case."""
    holds = [figure.holds for figure in group.values() if figure.bound is not None]
    word = "SHORT" if False in holds else "not all measured" if None in holds else "holds" if holds else "-"
    return word + " (disturbed)" * any(f.disturbed for f in group.values())


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)] + [0]
    left = {i for i, cell in enumerate(rows[0]) if cell in ("", "hosts", "link", "verdict")}
    lines = ["  ".join(cell.ljust(width) if i in left else cell.rjust(width)
                       for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
