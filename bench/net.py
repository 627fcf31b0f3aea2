"""Collectives and training between hosts: network namespaces of this machine whose links have a given rate."""
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile

from hosts import UNLIMITED, CannotMakeHosts, Hosts, bytes_per_second
from net_report import BOUND, NetFigure
from runner import PEERS, Failed, figures_of, settings
from suite import MB, Case

GLOO_ALGORITHMS = ["ring", "bcube"]
REAL_TIME = ["chrt", "--fifo", "10"]  # before all programs of the usual kind


@dataclasses.dataclass(frozen=True)
class NetCase(Case):
    row: int = 1
    hosts: int = 2
    rate: str = UNLIMITED
    what: str = ""  # the collective or the network
    bytes: int = 0  # of the longer buffer of a rank, or of all parameters

    @property
    def ranks(self):
        """Of each host."""
        return self.workers // self.hosts

    @property
    def link_seconds(self):
        """The least time that the bytes need on a link; None where it is not limited."""
        speed = bytes_per_second(self.rate)
        return speed and link_bytes(self.what, self.bytes, self.hosts, self.ranks) / speed


def link_bytes(what, size, hosts, ranks):
    """What the busiest direction of the busiest link has to carry at least."""
    others = (hosts - 1) / hosts
    return size * {"reduce_scatter": others, "all_gather": others, "broadcast": 1, "all_to_all": ranks * others}.get(
        what, 2 * others)


def name_of(size):
    return f"{size // MB} MB" if size >= MB else f"{size >> 10} KB"


def measure_net(bench, runner, options):
    """Lists of figures, one list per row, number of hosts and rate."""
    try:
        for count in options.hosts or bench.hosts(options.quick):
            with Hosts(count, options.congestion) as hosts:
                net = Net(bench, runner, options, hosts)
                yield from net.collectives()
                if count == 2 or options.hosts:
                    yield from net.training()
    except CannotMakeHosts as why:
        print(f"{bench.name}: nothing is measured: {why}", file=sys.stderr, flush=True)
        yield [NetFigure(NetCase(bench.name, "", {}), "", skipped=True, notes=[str(why)])]


class Net:
    """The rows of some hosts."""

    def __init__(self, bench, runner, options, hosts):
        self.bench, self.runner, self.options, self.hosts = bench, runner, options, hosts
        self.rounds = 1 if options.quick else bench.rounds
        self.first = REAL_TIME if options.real_time else []

    def collectives(self):
        for row in [row for row in self.options.rows if row != 3]:
            for rate in self.options.rate or self.bench.rates(row, self.options.quick):
                for ranks in self.options.ranks_per_host or self.bench.ranks(row, self.options.quick):
                    yield self._collectives(row, rate, ranks)

    def _collectives(self, row, rate, ranks):
        """Figures of all collectives and sizes of a row: a process measures them one after the other."""
        tasks = self.bench.tasks(row, self.options.quick)
        groups = {(what, size): self._figures(row, rate, ranks, what, size) for what, size, _ in tasks}
        self.hosts.limit(rate)
        players = self._players(groups)
        where = f"{self.bench.name} row {row}, {len(self.hosts.names)} hosts x {ranks}, {rate}"
        for number in range(1, self.rounds + 1):
            for peer, mode in list(players):
                who = f"{peer or 'fleetx'} {mode}".rstrip()
                when = f"round {number}/{self.rounds}  {where}: {who}"
                try:
                    lines, others = self._play(peer, mode, ranks, tasks)
                except Failed as failure:
                    players.remove((peer, mode))
                    self._failed(when, who, failure, [f for group in groups.values() for f in group
                                                      if peer in ("", f.peer)])
                    continue
                for key, line in lines.items():
                    for figure in groups[key]:
                        figure.disturbed |= others > 0.1
                        if not peer:
                            figure.add_ours(line)
                        elif figure.peer == peer:
                            figure.add_peer(mode, line)
                say(when, ", ".join(f"{what} {name_of(size)} {line['seconds']:.4g} s"
                                    for (what, size), line in lines.items()), others)
        return [figure for group in groups.values() for figure in group]

    def _figures(self, row, rate, ranks, what, size):
        """One per peer, and one of the bound where there is one."""
        count = len(self.hosts.names)
        name = what.replace("_", "-") + f" {name_of(size)} at {rate} on {count} hosts"
        case = NetCase(self.bench.name, "GB/s", self.bench.asked(row, size, rate), name, workers=count * ranks,
                       field="gb_per_s", row=row, hosts=count, rate=rate, what=what, bytes=size)
        if row == 4:
            case = dataclasses.replace(case, unit="CPU s/GB", model="CPU of " + name, field="cpu_s_per_gb",
                                       lower_is_better=True)
        figures = [NetFigure(case, peer, rounds=self.rounds, congestion=self.options.congestion,
                             real_time=self.options.real_time) for peer in case.asked]
        for figure in figures:
            if figure.peer == BOUND:
                figure.add_peer("", {"gb_per_s": size / case.link_seconds / 1e9, "seconds": case.link_seconds})
        return figures

    def _failed(self, when, who, failure, figures):
        print(f"{when} failed: {failure}", file=sys.stderr, flush=True)
        self.hosts.end_processes()
        for figure in figures:
            figure.note(f"{who}: {failure}")

    def _players(self, groups):
        """Ours and the peers that are there, each in its modes."""
        players = [("", "")]
        for peer in dict.fromkeys(f.peer for group in groups.values() for f in group if f.peer != BOUND):
            missing = self.runner.missing(peer) or self._no_mpi(peer)
            if not missing:
                players += [(peer, mode) for mode in (GLOO_ALGORITHMS if peer == "Gloo" else [""])]
                continue
            for figure in [f for group in groups.values() for f in group if f.peer == peer]:
                figure.note(missing)
        return players

    def _no_mpi(self, peer):
        program = self.runner.build / "bench/bench_net_rank_mpi"
        return f"no {program}: it is built where Open MPI is installed" if peer == "Open MPI" and not program.exists() \
            else None

    def _play(self, peer, mode, ranks, tasks):
        """(collective, bytes) -> seconds of a call, rate and CPU time by size; and what others took of the cores."""
        with tempfile.TemporaryDirectory() as folder:
            world = ranks * len(self.hosts.names)
            pathlib.Path(folder, "meeting").write_bytes(bytes(64 * world))
            arguments = [folder, *(f"{what}:{size}:{calls}" for what, size, calls in tasks)]
            if peer == "Open MPI":
                commands = [self._mpirun(ranks, [*self.first, self.runner.build / "bench/bench_net_rank_mpi", *arguments])]
            else:
                program = [self.runner.python, PEERS / "torch_collectives.py"] if peer == "torch Gloo" else \
                    [self.runner.program("bench_net_rank"), mode or "ours"]
                commands = self._on_every_host(ranks, [*self.first, *program, *arguments])
            _, usage = self.runner.together(commands)
            notes = [[*map(json.loads, pathlib.Path(folder, f"rank-{rank}").read_text().splitlines())]
                     for rank in range(world)]
        others = usage.of_others(least=sum(lines[-1]["process_cpu_s"] for lines in notes))  # mpirun leaves some alone
        return {(line["collective"], line["bytes"]): line for line in map(join, zip(*notes))}, others

    def _on_every_host(self, ranks, command, **more):
        """A process per rank, with what fleetrun and torchrun would tell it: (command, environment, more) each."""
        places = [(host, local) for host in range(len(self.hosts.names)) for local in range(ranks)]
        endpoints = [f"{self.hosts.address(host)}:{6070 + local}" for host, local in places]
        commands = []
        for rank, (host, _) in enumerate(places):
            env = {"PADDLE_TRAINER_ID": rank, "PADDLE_TRAINERS_NUM": len(places), "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
                   "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints), "RANK": rank, "WORLD_SIZE": len(places),
                   "MASTER_ADDR": self.hosts.address(0), "MASTER_PORT": 29500, "GLOO_SOCKET_IFNAME": "eth0"}
            commands.append({"command": [*self.hosts.enter(host), *command], "env": env,
                             **{name: of(host) for name, of in more.items()}})
        return commands

    def _mpirun(self, ranks, command):
        addresses = [self.hosts.address(host) for host in range(len(self.hosts.names))]
        agent = PEERS / "netns_agent"
        more_ranks_than_cores = ranks * len(addresses) > len(self.runner.cores(None))
        mca = {"plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": 1, "pml": "ob1", "oob_tcp_if_include": "eth0",
               "btl": "self,tcp" + ",vader" * (ranks > 1), "btl_tcp_if_include": "eth0",
               "mpi_yield_when_idle": int(more_ranks_than_cores)}
        flags = [flag for name, value in mca.items() for flag in ["--mca", name, value]]
        return {"command": [agent, addresses[0], "mpirun", "--allow-run-as-root", "--leave-session-attached",
                            "--bind-to", "none", *flags, "--host", ",".join(f"{a}:{ranks}" for a in addresses),
                            "-n", ranks * len(addresses), *command],
                "env": {"FLEETX_NET_HOSTS": " ".join(map("=".join, zip(addresses, self.hosts.names)))}}

    # --- training ---------------------------------------------------------------------------------------------

    def training(self):
        if 3 not in self.options.rows:
            return
        for model in self.options.models or self.bench.models(self.options.quick):
            yield self._training(model)

    def _training(self, model):
        """Figures of a network at all rates. A worker on every host, each with its share of the cores."""
        count, quick = len(self.hosts.names), self.options.quick
        batch, unit, parameters = self.bench.networks[model]
        if quick and not self.options.models:
            batch //= 4
        rates = self.options.rate or self.bench.rates(3, quick)
        modes = self.bench.modes(model, quick)
        groups = {}
        for rate in rates:
            case = NetCase(self.bench.name, unit, self.bench.asked(3, 0, rate), f"{model} at {rate} on {count} hosts",
                           batch, workers=count, threads=1, steps=1 if quick else 3, row=3, hosts=count, rate=rate,
                           what=model, bytes=4 * parameters)
            groups[rate] = {peer: NetFigure(case, peer, rounds=self.rounds, congestion=self.options.congestion)
                            for peer in case.asked}
            missing = self.runner.missing("torch DDP")
            if missing:
                groups[rate]["torch DDP"].note(missing)
                modes = []
        alone = {}
        for number in range(1, self.rounds + 1):
            for who in ["fleetx", *modes]:
                when = f"round {number}/{self.rounds}  {self.bench.name} row 3, {model}: " + \
                    ("torch " * (who != "fleetx")) + who
                every = [f for group in groups.values() for f in group.values()]
                line = self._attempt(when + " alone", lambda: self._alone(who, case, model), every)
                if line:
                    alone[who] = min(line["best_s"], alone.get(who, line["best_s"]))
                for rate, group in groups.items():
                    self.hosts.limit(rate)
                    line = self._attempt(f"{when} at {rate}", lambda: self.train(who, case, model), group.values())
                    if line and who == "fleetx":
                        for figure in group.values():
                            figure.add_ours(line)
                    elif line:
                        group["torch DDP"].add_peer(who, line)
        for group in groups.values():
            for figure in group.values():
                figure.add_training(alone, self.bench.bucket, self.bench.slack)
        return [f for group in groups.values() for f in group.values()]

    def _attempt(self, when, run, figures):
        try:
            line, others = run()
        except Failed as failure:
            self._failed(when, when.rpartition(": ")[2], failure, figures)
            return None
        for figure in figures:
            figure.disturbed |= others > 0.1
        say(when, f"{line['best_s']:.4g} s a step", others)
        return line

    def _cores(self, host):
        """Of a host: the machine's, in equal shares."""
        cores = self.runner.cores(None)
        share = max(1, len(cores) // len(self.hosts.names))
        first = host * share % len(cores)
        return cores[first:first + share]

    def _alone(self, who, case, model):
        """A step without communication, on all hosts at the same time: they share caches and memory."""
        program = [self.runner.tool, "bench", model, "--json"] if who == "fleetx" else \
            [self.runner.python, PEERS / "torch_peer.py", model, "--mode", who]
        outs, usage = self.runner.together([{"command": program + settings(case), "cores": self._cores(host), "threads": 1}
                                            for host in range(case.hosts)])
        return max((figures_of(out) for out in outs), key=lambda line: line["best_s"]), usage.of_others()

    def train(self, who, case, model, flags=()):
        """A worker on every host; flags are for ours."""
        with tempfile.TemporaryDirectory() as folder:
            own = [pathlib.Path(folder, str(host)) for host in range(len(self.hosts.names))]
            for place in own:  # for logs: all hosts see the same files
                place.mkdir()
            if who == "fleetx":
                ips = ",".join(self.hosts.address(host) for host in range(len(self.hosts.names)))
                command = [self.runner.tool.with_name("fleetrun"), f"--ips={ips}", "--nproc_per_node=1", "--log_dir=log",
                           self.runner.tool, "bench", model, "--json", *flags, *settings(case)]
                commands = [{"command": [*self.hosts.enter(host), *command]} for host in range(len(self.hosts.names))]
            else:
                commands = self._on_every_host(1, [self.runner.python, PEERS / "torch_ddp_peer.py", model, "--mode", who,
                                                   "--workers", case.workers, *settings(case)])
            for host, command in enumerate(commands):
                command.update(cores=self._cores(host), threads=1, folder=own[host])
            outs, usage = self.runner.together(commands)
        return figures_of(outs[0]), usage.of_others()


def say(when, what, others):
    print(f"{when}: {what}" + (others > 0.1) * f" (others took {others:.0%} of the cores)", file=sys.stderr, flush=True)


def join(notes):
    """The notes of all ranks on a task. A call lasts from the first rank's begin to the last one's end."""
    begins, ends = ([*zip(*(note[name] for note in notes))] for name in ("begin_us", "end_us"))
    seconds = statistics.median(max(end) - min(begin) for begin, end in zip(begins, ends)) / 1e6
    size, calls = notes[0]["bytes"], len(begins)
    return {"collective": notes[0]["collective"], "bytes": size, "seconds": seconds, "gb_per_s": size / seconds / 1e9,
            "cpu_s_per_gb": sum(note["cpu_s"] for note in notes) / (calls * size / 1e9),
            "version": notes[0].get("version", "")}
