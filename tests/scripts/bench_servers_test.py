"""The parts of bench/run that compare strategies and parameter servers: who is compared with whom, and what is read."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(REPO / "bench"), str(REPO / "bench/peers")]

import ctr  # noqa: E402
import learning  # noqa: E402
import movielens  # noqa: E402
import own_programs  # noqa: E402
import servers  # noqa: E402
from contest import Comparison, in_turn  # noqa: E402
from report import Figure  # noqa: E402
from runner import Failed, Runner  # noqa: E402
from suite import BENCHES, Case  # noqa: E402


def runner(folder="no-such-folder"):
    return Runner(pathlib.Path(folder, "tools/fleetx"), pathlib.Path(folder, "venv"), None, 10)


class Contest(unittest.TestCase):
    def play(self, *values, rounds=2):
        """Ours and peers that give these in turn; None: it fails."""
        turns = [iter(some) for some in values]
        names = ["ours", *(f"peer {i}" for i in range(1, len(values)))]
        self.order = []

        def run(name, turn):
            self.order.append(name)
            value = next(turn)
            if value is None:
                raise Failed("out of luck")
            return {"speed": value, "others": 0.0}
        case = Case("bench", "x/s", {"peer": 2.0}, field="speed")
        comparison = Comparison(Figure(case, "peer"), "ours", {name: name[5:] for name in names[1:]})
        with mock.patch("sys.stderr"):
            figure, = in_turn("somewhere", {name: lambda n=name, t=turn: run(n, t) for name, turn in zip(names, turns)},
                              [comparison], rounds)
        return figure

    def test_the_best_round_of_the_best_mode_counts(self):
        figure = self.play([3, 5], [1.5, 2], [1.9, 1])
        self.assertEqual((figure.ours, figure.mode, figure.ratio, figure.verdict), (5, "1", 2.5, "holds"))

    def test_hopeless_modes_are_not_repeated(self):
        self.play([3, 5], [1, 2], [0.1, 9])
        self.assertEqual(self.order, ["ours", "peer 1", "peer 2", "ours", "peer 1"])

    def test_a_peer_that_fails_is_left_out_and_ours_is_tried_again(self):
        figure = self.play([None, 5], [None, 1])
        self.assertEqual(self.order, ["ours", "peer 1", "ours"])
        self.assertEqual((figure.ours, figure.ratio), (5, None))
        self.assertEqual(figure.verdict, "not measured: ours: out of luck; peer 1: out of luck")


class Asked(unittest.TestCase):
    def test_bounds_by_instruction_set(self):
        case = Case("bench", "", {"peer": {"amx": 2.0, "avx512_bf16": 1.6, "avx2": 0.9}})
        self.assertEqual([case.ratio_asked("peer", isa) for isa in ["", "sse", "avx2", "avx512", "avx512_bf16", "amx"]],
                         [0.9, 0.9, 0.9, 0.9, 1.6, 2.0])

    def test_limits_in_both_directions(self):
        for lower, value, verdict, asked in [(False, 31, "holds", ">= 30 M"), (False, 29, "FALLS SHORT", ">= 30 M"),
                                             (True, 29, "holds", "< 30 M"), (True, 31, "FALLS SHORT", "< 30 M")]:
            figure = Figure(Case("bench", "M", {}, field="v", limit=30, lower_is_better=lower), "")
            figure.add_ours({"v": value})
            self.assertEqual((figure.verdict, figure.asked), (verdict, asked))


class Environments(unittest.TestCase):
    def test_every_peer_has_its_own_and_says_how_to_get_it(self):
        run = runner()
        for peer, own in [("tensorflow", "venv-tensorflow"), ("paddle 2.6", "venv-paddle2.6"),
                          ("paddle 1.8 geo", "venv-paddle1.8"), ("torch RPC", "venv"), ("paddle", "venv")]:
            self.assertEqual(run.interpreter(peer).parts[-3:], (own, "bin", "python"))
        self.assertEqual(run.missing("paddle 1.8 geo"), "no paddle 1.8: bench/setup-peers.sh paddle1.8 installs it")
        self.assertEqual(run.missing("torch RPC"), "no torch: bench/setup-peers.sh installs it")
        self.assertIsNone(run.missing("own async"))


class Servers(unittest.TestCase):
    def comparisons(self, workers):
        return servers.comparisons(BENCHES["ps"], workers, 1, runner())

    def test_who_is_compared(self):
        def asked(workers):
            return [(c.ours, c.figure.peer, c.figure.asked) for c in self.comparisons(workers) if c.figure.asked]
        shared = [("fleetx async", "tensorflow", ">= 1.8")] * 2 + [("fleetx async", "paddle 2.6", ">= 3.5"),
                                                                   ("fleetx async", "paddle 2.6", ">= 3")]
        memory = [("fleetx async", "", "< 200 MiB")]
        self.assertEqual(asked(1), shared + [("fleetx no servers", "torch compute alone", ">= 1")] + memory)
        self.assertEqual(asked(2), shared + [("fleetx sync", "own async", ">= 0.9"),
                                             ("fleetx half_async", "paddle 1.8 half_async", ">= 3"),
                                             ("fleetx geo", "paddle 1.8 geo", ">= 3")] + memory)

    def test_every_figure_has_a_name_of_its_own_and_a_player(self):
        players = servers.Jobs(runner(), "data").players(2)
        for workers in (1, 2):
            names = [(str(c.figure.case), c.figure.peer) for c in self.comparisons(workers)]
            self.assertEqual(len(names), len(set(names)), names)
            for comparison in self.comparisons(workers):
                self.assertIn(comparison.ours, players)
                self.assertLessEqual(comparison.peers.keys(), players.keys())

    def test_a_job_lasts_from_the_first_begin_to_the_last_end(self):
        notes = [{"begin_s": 1, "end_s": 4, "cpu_begin_s": 10, "cpu_end_s": 14, "examples": 60, "rss_mib": 7, "version": "9"},
                 {"begin_s": 2, "end_s": 6, "cpu_begin_s": 11, "cpu_end_s": 16, "examples": 60, "rss_mib": 8, "version": "9"}]
        line = servers.joined(notes, types.SimpleNamespace(of_others=lambda least: 0.0))
        self.assertEqual((line["examples_per_s"], line["examples_per_cpu_s"], line["rss_mib"]), (24, 20, 8))


class Ctr(unittest.TestCase):
    def test_what_is_written_can_be_read(self):
        try:
            import numpy as np
        except ImportError:
            self.skipTest("no numpy")
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"CTR_DATA": folder}):
            ctr.write_files(folder, 400)
            self.assertEqual([len(ctr.files_of(0, n)) for n in (1, 2, 4)], [4, 2, 1])
            path = ctr.files_of(1, 2)[0]
            self.assertEqual(ctr.count_lines(path), 100)
            numbers, ids, labels = ctr.parse(pathlib.Path(path).read_text())
        self.assertEqual((numbers.shape, ids.shape, labels.shape), ((100, 13), (100, 26), (100, 1)))
        self.assertTrue((0 <= numbers).all() and (numbers <= 1).all() and set(np.unique(labels)) == {0, 1})
        self.assertTrue((1 <= ids).all() and (ids < ctr.IDS).all())

    def test_cpu_time_is_that_of_marked_processes_and_of_those_that_ended(self):
        burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
        code = "import subprocess, sys, time; " \
               f"subprocess.run([sys.executable, '-c', {burn!r}]); print(flush=True); time.sleep(60)"
        with mock.patch.dict(os.environ, {"CTR_JOB": f"test-{os.getpid()}"}):
            process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            try:
                process.stdout.readline()
                self.assertGreater(ctr.job_cpu(), 0.25)
            finally:
                process.kill()
                process.communicate()
            self.assertEqual(ctr.job_cpu(), 0)

    def test_workers_meet(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"CTR_NOTES": folder}):
            late = subprocess.Popen([sys.executable, "-c", "import ctr, time; time.sleep(0.3); ctr.meet('here', 1, 2)"],
                                    cwd=REPO / "bench/peers")
            begin = time.monotonic()
            ctr.meet("here", 0, 2)
            self.assertGreater(time.monotonic() - begin, 0.2)
            self.assertEqual(late.wait(timeout=30), 0)


class Programs(unittest.TestCase):
    def test_lines_of_tables(self):
        text = """sgd, 1e+06 rows of 16, 1 threads: bytes per row 79.2 (resident 80.1), over record 1.25; made 9.1 M/s
  uniform    pull 31.5 M keys/s, push 30.25 M keys/s; two lines of memory 60 M/s
  zipf 1.05  pull 50 M keys/s, push 49 M keys/s; two lines of memory 90 M/s
adagrad, 1e+06 rows of 16, 1 threads: bytes per row 143 (resident 145), over record 1.13; made 9 M/s
  uniform    pull 20 M keys/s, push 19 M keys/s; two lines of memory 60 M/s
disk: 1e+06 rows, budget 48 MB, table 144 MB, 300000 rows in memory; trains 2.9 M keys/s, in memory 9.4 M keys/s: ratio 0.31
"""
        line = own_programs.table_line(text)
        self.assertEqual([line[name] for name, _, _ in own_programs.TABLE], [31.5, 30.25, 50, 49, 1.25, 1.13, 0.31])
        with self.assertRaises(KeyError):
            own_programs.table_line("sgd")

    def test_lines_of_rpc(self):
        text = "  pull 5.5 M keys/s; the server used 0.5 cores: 11 M keys/s per core\n" \
               "  push 4 M keys/s; the server used 0.4 cores: 10 M keys/s per core\n"
        self.assertEqual(own_programs.rpc_line(text),
                         {"pull": 5.5, "pull per server core": 11, "push": 4, "push per server core": 10})


class Learning(unittest.TestCase):
    def test_the_ten_combinations_of_the_documents_are_there(self):
        self.assertEqual(len([name for name in learning.SETTINGS if "+" in name]), 10)
        for name, fields in learning.SETTINGS.items():
            switches = {field for field in fields if not field.endswith("_configs")}
            self.assertEqual(switches, set() if name.startswith("plain") else set(name.split("+")))

    def test_what_each_is_compared_with(self):
        self.assertEqual([(learning.optimizer_of(name), learning.plain_of(name))
                          for name in ["plain", "plain adam", "dgc", "amp+lars", "amp+recompute+lamb"]],
                         [("momentum", "plain"), ("adam", "plain"), ("momentum", "plain"), ("lars", "plain"),
                          ("lamb", "plain adam")])


    def measure(self, notes, fails=()):
        """All figures of quick runs by jobs that make up what they find; `jobs` has the settings of each."""
        self.jobs = []

        def job(commands):
            runs, results = commands[0]["command"][-2:]
            self.jobs.append([])
            for run in json.loads(pathlib.Path(runs).read_text()):
                switches = [field for field in run["strategy"] if not field.endswith("_configs")]
                if set(fails) & {*switches}:
                    raise Failed("a worker died")
                self.jobs[-1].append("+".join(switches))
                right = 0.9 - 0.1 * abs(run["lr"] - 0.05) - 0.01 * ("dgc" in switches)
                with pathlib.Path(results).open("a") as file:
                    file.write(json.dumps({**run, "workers": 2, "curve": [0.5, right], "accuracy": 100 * right,
                                           "applied": [*switches, "data_parallel"]}) + "\n")
        r = runner()
        with mock.patch.object(r, "together", side_effect=job), mock.patch.object(learning.School, "_draw"), \
                mock.patch("sys.stderr"):
            options = types.SimpleNamespace(quick=True, resume=notes)
            return {(f.case.batch, f.case.model.rpartition(", ")[2]): f
                    for some in learning.measure_learning(BENCHES["learning"], r, options) for f in some}

    def test_finished_runs_are_not_repeated(self):
        with tempfile.TemporaryDirectory() as folder:
            notes = pathlib.Path(folder, "runs.json")
            figures = self.measure(notes, fails=["lamb"])
            self.assertEqual(figures[64, "amp"].verdict, "holds")
            self.assertEqual(figures[64, "dgc"].verdict, "FALLS SHORT")
            self.assertIn("a worker died", figures[64, "lamb"].verdict)
            figures = self.measure(notes)
            self.assertEqual(self.jobs[0][0], "lamb")
            self.assertNotIn("amp", self.jobs[0])
            self.assertEqual(figures[64, "lamb"].verdict, "holds")
            self.measure(notes)
            self.assertEqual(self.jobs, [])

    def test_the_rate_is_that_of_the_pictures_held_out(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch("learning.quick", lambda task, _limit: task):
            self.measure(pathlib.Path(folder, "runs.json"))
            lines = [json.loads(line) for line in pathlib.Path(folder, "runs.json").read_text().splitlines()]
        rates = [line["lr"] for line in lines if line["strategy"].get("amp") and line["optimizer"] == "momentum"]
        self.assertEqual(rates[0], 0.05)


class RealData(unittest.TestCase):
    def test_without_the_package_it_says_so(self):
        with mock.patch("movielens.data", side_effect=Failed("pip cannot fetch it")), mock.patch("sys.stderr"):
            (figure,), = movielens.measure_auc(BENCHES["ps-auc"], runner(), types.SimpleNamespace(quick=True))
        self.assertTrue(figure.skipped)
        self.assertEqual(figure.verdict, "not measured: pip cannot fetch it")


if __name__ == "__main__":
    unittest.main()
