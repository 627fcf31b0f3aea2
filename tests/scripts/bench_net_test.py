"""bench/run net: flags, the skip, what it makes of the notes of ranks, and that nothing of its hosts is left behind.
Argument: the built fleetx."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

REPO = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(sys.argv.pop(1)).absolute()
sys.dont_write_bytecode = True
sys.path.insert(0, str(REPO / "bench"))

import hosts  # noqa: E402
from net import Net, link_bytes, measure_net  # noqa: E402
from net_report import duration  # noqa: E402
from runner import Runner  # noqa: E402
from suite import BENCHES, MB  # noqa: E402


def why_no_hosts():
    try:
        with hosts.Hosts(1, "cubic") as one:
            entered = subprocess.run([*one.enter(0), "true"], capture_output=True, check=False)
        return "a network namespace cannot be entered here (a chroot?)" if entered.returncode else None
    except hosts.CannotMakeHosts as why:
        return str(why)


WHY_NOT = why_no_hosts()
needs_hosts = unittest.skipIf(WHY_NOT, f"SKIPPED: {WHY_NOT}")


def command(*arguments, tool=TOOL, venv="no-such-folder"):
    return [sys.executable, REPO / "bench/run", "--tool", tool, "--venv", venv, "net", *arguments]


def bench(*arguments, env=None, **programs):
    run = subprocess.run(command(*arguments, **programs), capture_output=True, text=True, check=False, timeout=120, env=env)
    run.figures = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return run


def namespaces(pid=r"\d+"):
    return [path.name for path in hosts.NAMED.glob("*") if re.fullmatch(rf"{hosts.PREFIX}{pid}-\w+", path.name)]


class Flags(unittest.TestCase):
    def test_bad_usage(self):
        for arguments, part in [(["--rows", "0"], "--rows: '0': expected numbers from 1 to 4"),
                                (["--rows", "1,x"], "--rows: '1,x'"), (["--hosts", "1"], "expected numbers from 2 to 8"),
                                (["--rate", "1gbit,fast"], "'fast' is not a rate; write such as 100mbit"),
                                (["--models", "mlp"], "no network 'mlp'; known: bert-base, resnet50, vgg16"),
                                (["--batch", "3"], "'net' has no --batch: it measures a list of its own")]:
            run = bench(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn(part, run.stderr)
        run = subprocess.run([sys.executable, REPO / "bench/run", "--tool", TOOL, "mlp", "--hosts", "2"],
                             capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((run.returncode, "--hosts is for net" in run.stderr), (2, True))

    def test_rates(self):
        self.assertEqual([hosts.bytes_per_second(rate) for rate in ["1gbit", "500mbit", "unlimited"]],
                         [125e6, 62.5e6, None])
        for wrong in ["0gbit", "1", "1 gbit", "gbit", ""]:
            with self.assertRaises(ValueError):
                hosts.bytes_per_second(wrong)


class Skip(unittest.TestCase):
    def test_without_the_tools_it_says_so_and_ends_with_3(self):
        with tempfile.TemporaryDirectory() as folder:
            run = bench("--quick", env={**os.environ, "PATH": folder})
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("net: nothing is measured: n", run.stderr)  # no ip, or network namespaces need root
        self.assertEqual(len(run.figures), 1)
        self.assertRegex(run.figures[0]["verdict"], "^not measured: n")
        self.assertIn("net: not measured", run.stdout.splitlines()[-1])

    def test_without_root(self):
        options = types.SimpleNamespace(hosts=None, quick=True, congestion="cubic")
        with mock.patch("os.geteuid", return_value=1000):
            figures = [f for list_ in measure_net(BENCHES["net"], None, options) for f in list_]
        self.assertEqual([f.verdict for f in figures], ["not measured: network namespaces need root"])
        self.assertTrue(figures[0].skipped)


class Bounds(unittest.TestCase):
    def test_bytes_on_the_busiest_link(self):
        for what, size, count, ranks, expected in [("all_reduce", 100, 2, 1, 100), ("all_reduce", 100, 4, 2, 150),
                                                   ("reduce_scatter", 100, 4, 1, 75), ("all_gather", 100, 2, 2, 50),
                                                   ("broadcast", 100, 3, 1, 100), ("all_to_all", 100, 2, 2, 100),
                                                   ("bert-base", 100, 2, 1, 100)]:
            self.assertEqual(link_bytes(what, size, count, ranks), expected, what)


@needs_hosts
class Links(unittest.TestCase):
    SEND = """
import socket, sys, threading, time
here, there, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
server = socket.create_server((here, 5000))
def drain():
    connection, _ = server.accept()
    while connection.recv(1 << 20): pass
reader = threading.Thread(target=drain)
reader.start()
while True:
    try: out = socket.create_connection((there, 5000)); break
    except OSError: time.sleep(0.01)
begin = time.monotonic()
out.sendall(bytes(size)); out.close(); reader.join()
print(time.monotonic() - begin, out.family)
"""

    def seconds(self, net, a, b, size):
        """Both send to each other at the same time."""
        sides = [subprocess.Popen([*net.enter(x), sys.executable, "-c", self.SEND, net.address(x), net.address(y),
                                   str(size)], stdout=subprocess.PIPE, text=True) for x, y in [(a, b), (b, a)]]
        return max(float(side.communicate(timeout=30)[0].split()[0]) for side in sides)

    def test_the_rate_holds_in_both_directions_at_once(self):
        with hosts.Hosts(3, "cubic") as net:
            net.limit("100mbit")
            size = 5 * MB
            limited = self.seconds(net, 0, 2, size)
            self.assertGreater(limited, 0.93 * size * 8 / 100e6)
            self.assertLess(limited, 3 * size * 8 / 100e6)  # twice would be one direction at a time
            net.limit("unlimited")
            self.assertLess(self.seconds(net, 1, 2, size), limited / 2)


@needs_hosts
class CannotBeMade(unittest.TestCase):
    def test_what_fails_is_named_and_nothing_is_left(self):
        for congestion, rate, part in [("no-such", "1gbit", "congctl no-such` failed: "),
                                       ("cubic", "999999999gbit", "rate 999999999gbit")]:
            with self.assertRaisesRegex(hosts.CannotMakeHosts, part):
                with hosts.Hosts(2, congestion) as two:
                    two.limit(rate)
            self.assertEqual(namespaces(os.getpid()), [])


class Durations(unittest.TestCase):
    def test_units(self):
        self.assertEqual([duration(x) for x in [None, 12.34, 0.9996, 0.012345, 0.0009996, 1.23e-5]],
                         ["-", "12.3 s", "1 s", "12.3 ms", "1 ms", "12.3 us"])


class MadeUpRanks(unittest.TestCase):
    """The program of a rank is a script."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tool = self.folder / "tools/fleetx"
        for name in ["tools/fleetx", "bench/bench_net_rank"]:
            (self.folder / name).parent.mkdir()
        self.tool.write_text("")

    def rank(self, script):
        program = self.folder / "bench/bench_net_rank"
        program.write_text(f"#!{sys.executable}\nimport json, os, pathlib, subprocess, sys, time\n{script}\n")
        program.chmod(0o755)

    def notes(self, ours, gloo):
        """Rank 1 begins and ends a second after rank 0; the other figures follow."""
        return f"""
rank = int(os.environ["PADDLE_TRAINER_ID"])
assert os.environ["PADDLE_CURRENT_ENDPOINT"] == os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")[rank]
seconds = {ours} if sys.argv[1] == "ours" else {gloo} if sys.argv[1] == "ring" else 2 * {gloo}
with open(sys.argv[2] + f"/rank-{{rank}}", "w") as notes:
    for task in sys.argv[3:]:
        what, size, calls = task.split(":")
        begins = [1e6 * (10 * i + rank) for i in range(int(calls))]
        print(json.dumps({{"collective": what, "bytes": int(size), "begin_us": begins, "process_cpu_s": 0,
                          "cpu_s": seconds * int(calls),
                          "end_us": [b + 1e6 * (seconds - 1) for b in begins]}}), file=notes)
"""

    @needs_hosts
    def test_real_time_is_before_other_programs(self):
        self.rank("assert os.sched_getscheduler(0) == os.SCHED_FIFO\n" + self.notes(ours=2, gloo=3))
        run = bench("--quick", "--rows", "1", "--rate", "1gbit", "--hosts", "2", "--ranks-per-host", "1", "--real-time",
                    tool=self.tool)
        gloo = [f for f in run.figures if f["peer_name"] == "Gloo ring"]
        self.assertEqual({f["real_time"] for f in gloo}, {True}, run.stderr)
        self.assertEqual({f["seconds"] for f in gloo}, {2})

    @needs_hosts
    def test_figures_of_all_reduce(self):
        self.rank(self.notes(ours=2, gloo=3))
        run = bench("--quick", "--rows", "1,4", "--rate", "1gbit", "--hosts", "3", "--ranks-per-host", "1", tool=self.tool)
        big = {f["peer_name"]: f for f in run.figures if f["bytes"] == 100 * MB and f["row"] == 1}
        # From the first begin to the last end: ranks 0 to 2 are two seconds apart, and a call takes one.
        bound = big["bound"]
        self.assertEqual((bound["seconds"], bound["hosts"], bound["workers"], bound["rate"]), (3, 3, 3, "1gbit"))
        self.assertAlmostEqual(bound["peer_seconds"], 4 / 3 * 100 * MB / 125e6, places=3)
        self.assertAlmostEqual(bound["ratio"], bound["peer_seconds"] / 3, places=3)
        self.assertEqual((bound["asked"], bound["verdict"]), (">= 0.93", "FALLS SHORT"))
        gloo = big["Gloo ring"]
        self.assertEqual(gloo["modes"], {"ring": rounded(100 * MB / 4e9), "bcube": rounded(100 * MB / 7e9)})
        self.assertEqual((gloo["ratio"], gloo["asked"], gloo["verdict"]), (rounded(4 / 3), ">= 1", "holds"))
        self.assertIn("setup-peers.sh", big["torch Gloo"]["verdict"])
        self.assertIn("not measured", big["Open MPI"]["verdict"])
        self.assertIsNone([f for f in run.figures if f["bytes"] == 1024 and f["peer_name"] == "bound"][0]["asked"])
        cpu = [f for f in run.figures if f["row"] == 4 and f["peer_name"] == "Gloo ring"]
        self.assertEqual({(f["unit"], f["ratio"], f["asked"]) for f in cpu}, {("CPU s/GB", rounded(2 / 3), "<= 1")})
        self.assertEqual(cpu[0]["ours"], rounded(6 / (25 * MB / 1e9)))
        self.assertEqual(run.returncode, 1, run.stderr)
        lines = [line for line in run.stdout.splitlines() if not line.startswith("{")]
        self.assertRegex(run.stdout, r"\nall-reduce +100 MB +3 x 1 +1gbit +3 s +0.373! +- +- +4 s +1.33 +- +- +SHORT")
        self.assertRegex(run.stdout, r"\nall-reduce +1 KB +3 x 1 +1gbit +3 s +3.64e-06 .* not all measured")
        self.assertLess(max(map(len, lines)), 130)

    @needs_hosts
    def test_figures_of_training(self):
        def answer(seconds):
            return f"""echo '{{"best_s": {seconds}, "items_per_s": {18 / seconds}, "loss": 1, "version": "9"}}'"""

        programs = {"tools/fleetx": f"[[ $* == 'bench bert-base'* ]] && {answer(2)}",
                    "tools/fleetrun": f"[[ $1 == --ips=10.78.0.1,10.78.0.2 && ! -e log ]] && touch log && {answer(4.5)}",
                    "bin/python": f"""[[ $1 == -c ]] && exit  # torch is there
                                      if [[ $1 == *ddp* && $MASTER_ADDR == 10.78.0.1 ]]; then {answer(9)}; else {answer(6)}
                                      fi"""}
        for name, script in programs.items():
            program = self.folder / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/usr/bin/env bash\n{script}\n")
            program.chmod(0o755)
        run = bench("--quick", "--rows", "3", "--models", "bert-base", tool=self.tool, venv=self.folder)
        ddp, bound = run.figures
        wire = 4 * 110_106_428 / 125e6
        for figure in run.figures:
            self.assertEqual([figure[name] for name in ["batch", "seconds", "alone_s", "wire_s"]],
                             [8, 4.5, 2, rounded(wire)])
        self.assertEqual([ddp[name] for name in ["peer_name", "peer_seconds", "peer_alone_s", "ratio", "verdict"]],
                         ["torch DDP 9 default", 9, 6, 2, "holds"])
        self.assertAlmostEqual(bound["ratio"], wire / 4.5, places=3)
        least = wire / (1.1 * wire + 32 * MB / 125e6)
        self.assertEqual((bound["asked"], bound["verdict"]), (f">= {least:.3g}", "FALLS SHORT"))
        self.assertRegex(run.stdout, r"bert-base batch 8 +1gbit +4.5 +2 +2.50 +9 +6 +3.00 +3.52 +2 +0.783! +SHORT")
        self.assertEqual(run.returncode, 1, run.stderr)

    @needs_hosts
    def test_nothing_is_left_after_a_failure(self):
        self.rank("sys.exit(5) if os.environ['PADDLE_TRAINER_ID'] == '1' else time.sleep(100)")
        begin = time.monotonic()
        run = bench("--quick", "--rows", "1", "--rate", "1gbit", tool=self.tool)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual(run.returncode, 1)
        self.assertIn("fleetx: exit code 5: no message", run.figures[0]["notes"])
        self.assertEqual(self.left(), [])

    def started(self):
        """bench/run with ranks that sleep, one of them with a process in a session of its own, and their pids."""
        self.rank(f"""
child = subprocess.Popen(["sleep", "100"], start_new_session=True, stdout=subprocess.DEVNULL)
name = pathlib.Path({str(self.folder)!r}, "pids-" + os.environ["PADDLE_TRAINER_ID"])
name.with_suffix(".new").write_text(f"{{os.getpid()}} {{child.pid}}")
name.with_suffix(".new").rename(name)
time.sleep(100)""")
        run = subprocess.Popen(command("--quick", "--rows", "1", tool=self.tool), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        names = [self.folder / f"pids-{rank}" for rank in range(2)]
        while not all(name.exists() for name in names) and time.monotonic() < deadline:
            time.sleep(0.02)
        pids = [int(pid) for name in names for pid in name.read_text().split()]
        for name in names:
            name.unlink()
        self.addCleanup(run.kill)
        self.assertEqual(len(namespaces(run.pid)), 3)
        return run, pids

    def left(self):
        """Namespaces whose process has ended."""
        return [name for name in namespaces() if not pathlib.Path("/proc", name.split("-")[2]).exists()]

    def check_gone(self, run, pids):
        self.assertEqual(namespaces(run.pid), [])
        for pid in pids:
            self.assertTrue(self.ended(pid), pid)

    @staticmethod
    def ended(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    @needs_hosts
    def test_interruption_removes_everything(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            run, pids = self.started()
            run.send_signal(number)
            run.communicate(timeout=60)
            self.assertEqual(run.returncode, 130)
            self.check_gone(run, pids)

    @needs_hosts
    def test_left_overs_of_a_killed_run_are_removed_by_the_next(self):
        run, pids = self.started()
        run.kill()
        run.communicate(timeout=60)
        self.assertEqual(len(namespaces(run.pid)), 3)
        with hosts.Hosts(2, "cubic"):
            self.assertEqual(len(namespaces(os.getpid())), 3, "those of a living process stay")
            hosts.remove_left_overs()
            self.assertEqual(len(namespaces(os.getpid())), 3)
            self.check_gone(run, pids)


def rounded(x):
    return float(f"{x:.5g}")


@needs_hosts
class BuiltRanks(unittest.TestCase):
    """What is built can do all collectives between hosts, with two ranks on each."""

    def test_all_collectives(self):
        runner = Runner(TOOL, pathlib.Path("no-such-folder"), None, 60)
        tasks = [(what, size, 2) for size in (1 << 10, 100_000)
                 for what in ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")]
        with hosts.Hosts(2, "cubic") as two:
            net = Net(BENCHES["net"], runner, types.SimpleNamespace(quick=True, real_time=False), two)
            for peer, mode, own in [("", "", tasks), ("Gloo", "ring", tasks[:1]), ("Gloo", "bcube", tasks[:1]),
                                    ("Open MPI", "", tasks)]:
                if net._no_mpi(peer):
                    continue
                lines, _ = net._play(peer, mode, 2, own)
                self.assertEqual([*lines], [(what, size) for what, size, _ in own])
                self.assertTrue(all(0 < line["seconds"] < 10 for line in lines.values()), lines)


if __name__ == "__main__":
    unittest.main()
