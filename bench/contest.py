"""Programs that run in turn, round after round, and figures that compare them."""
import sys
from dataclasses import dataclass, field

from report import Figure
from runner import Failed


@dataclass
class Comparison:
    """Who a figure is about: ours, and the players that count as modes of its peer."""
    figure: Figure
    ours: str
    peers: dict = field(default_factory=dict)  # player -> mode

    def add(self, player, line):
        if player == self.ours:
            self.figure.add_ours(line)
        if player in self.peers:
            self.figure.add_peer(self.peers[player], line)

    def has(self, player):
        return player == self.ours or player in self.peers

    def wants(self, player):
        """Whether another round of this player may change the figure."""
        return player == self.ours or player in self.peers and self.figure.worth_repeating(self.peers[player])


def in_turn(where, players, comparisons, rounds):
    """The figures of the comparisons. `players` have a name and a function that gives a line of figures."""
    players = dict(players)
    for number in range(1, rounds + 1):
        when = f"round {number}/{rounds}"
        for name in [*players]:
            about = [c for c in comparisons if c.has(name)]
            try:
                line = players[name]()
            except Failed as failure:
                failed(where, when, name, failure, [c.figure for c in about])
                if not any(name == c.ours for c in about):
                    del players[name]
                continue
            disturbed = line["others"] > 0.1
            for comparison in about:
                comparison.add(name, line)
                comparison.figure.disturbed |= disturbed and comparison.figure.case.unit != "MiB"
            case = about[0].figure.case
            print(f"{when}  {where}: {name} {line[case.field]:.5g} {case.unit}" +
                  (disturbed and case.unit != "MiB") * f" (others took {line['others']:.0%} of the cores)",
                  file=sys.stderr, flush=True)
        players = {name: run for name, run in players.items() if any(c.wants(name) for c in comparisons)}
    return [c.figure for c in comparisons]


def failed(what, when, who, failure, figures):
    print(f"{when}  {what}: {who} failed: {failure}", file=sys.stderr, flush=True)
    for figure in figures:
        figure.note(f"{who}: {failure}")
