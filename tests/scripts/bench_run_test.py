"""Runs bench/run without and with made-up peers: its lines, verdicts and exit codes. Argument: the built fleetx."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
TOOL = sys.argv.pop(1)
FIELDS = ["bench", "ours", "peer", "peer_name", "unit", "ratio", "asked"]


def bench(*arguments, venv="no-such-folder"):
    run = subprocess.run([sys.executable, REPO / "bench/run", "--tool", TOOL, "--venv", venv, *arguments],
                         capture_output=True, text=True, check=False, timeout=120)
    run.figures = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return run


class WithoutPeers(unittest.TestCase):
    def test_list_names_every_row(self):
        run = bench("--list")
        self.assertEqual(run.returncode, 0)
        names = [line.split()[0] for line in run.stdout.splitlines()]
        self.assertEqual(names, ["resnet50", "bert-base", "vgg16", "tiny-mlp", "mlp", "wide-deep", "memory",
                                 "resnet50-infer", "limits", "dp-resnet50", "dp-bert-base", "allreduce", "reader", "launch",
                                 "busy", "net", "amp", "recompute", "strategies", "sharding", "pipeline", "does-not-fit", "learning",
                                 "dgc-selection", "ps", "ps-table", "ps-auc", "ps-many", "ragged", "transformer-bleu", "tokenizer",
                                 "predict", "auto", "predict-tables"])
        for part in ["asked of torch: >= 1.35 (avx512), >= 1.15 (avx2); of paddle: >= 1",
                     "asked of torch DDP: >= 1.6; of one worker x 2: >= 0.97",
                     "asked of Open MPI: >= 1; of Gloo: >= 100 (64 KB), >= 8 (25 MB); of memcpy: >= 0.9 (100 MB)",
                     "asked of one thread beside the same: <= 1.1; idle, of --before: <= 1.02",
                     "asked of the bound: >= 0.93 (all-reduce from 25 MB), >= 0.9 (others); of Gloo and Open MPI: >= 1",
                     "asked of paddle 2.6 InMemoryDataset, for text: >= 3; of own text reader, for binary files: >= 8",
                     "asked: < 0.3 s (2 workers), < 1 s (16 workers), < 3 s (64 workers)",
                     "asked of own f32: >= 2 (amx), >= 1.6 (avx512_bf16), >= 0.9 (avx2), memory <= 0.65",
                     "asked of tensorflow: >= 1.8; of paddle 2.6: >= 3.5"]:
            self.assertIn(part, run.stdout)

    def test_documents_name_benches_that_exist(self):
        known = [line.split()[0] for line in bench("--list").stdout.splitlines()]
        for page in [REPO / "README.md", *(REPO / "docs").glob("*.md"), *(REPO / "bench/notes").glob("*.md")]:
            for name in re.findall(r"bench/run ([a-z][\w-]*)", page.read_text()):
                self.assertIn(name, known, page)

    def test_help_teaches(self):
        run = bench("--help")
        self.assertEqual(run.returncode, 0)
        for part in ["setup-peers.sh", "torch.compile", "bench/run resnet50 --batch 16 --threads 1", "Exit code"]:
            self.assertIn(part, run.stdout)

    def test_bad_usage(self):
        for arguments, part in [(["resnet"], "no bench 'resnet'; known: resnet50, bert-base, vgg16"),
                                (["launch", "--batch", "3"], "'launch' has no --batch: it measures a list of its own"),
                                (["busy", "--threads", "1"], "'busy' has no --threads"),
                                (["strategies", "--threads", "1"], "'strategies' has no --threads"),
                                (["amp", "--resume", "x"], "--resume is for learning"),
                                (["amp", "--models", "vgg16"], "no network 'vgg16'; known: resnet50, bert-base"),
                                (["busy", "--before", "nothing-here"], "scripts/build release"),
                                ([], "give a NAME"), (["mlp", "--threads", "0"], "positive"),
                                (["mlp", "--tool", "nothing-here"], "scripts/build release")]:
            run = bench(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn(part, run.stderr)

    def test_absent_peers_are_reported_not_measured(self):
        run = bench("tiny-mlp", "--quick", "--threads", "1")
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertEqual([f["peer_name"] for f in run.figures], ["torch", "paddle"])
        for figure in run.figures:
            self.assertEqual([*figure][:7], FIELDS)
            self.assertEqual(figure["bench"], "tiny-mlp")
            self.assertEqual(figure["unit"], "steps/s")
            self.assertGreater(figure["ours"], 100)
            self.assertIsNone(figure["peer"])
            self.assertIsNone(figure["ratio"])
            self.assertIn("not measured", figure["verdict"])
            self.assertIn("bench/setup-peers.sh", figure["verdict"])
            self.assertRegex(figure["machine"], r".+, \d+ cores?, \S+$")
            self.assertRegex(figure["date"], r"^\d{4}-\d\d-\d\d$")
            self.assertEqual(figure["rounds"], 1)
        self.assertEqual([f["asked"] for f in run.figures], [">= 5", ">= 1"])
        self.assertEqual(run.stdout.count("not measured"), 4, "two lines and two rows of the table")


    def test_launch_is_judged_without_its_peer(self):
        run = bench("launch", "--quick")
        self.assertIn(run.returncode, [0, 1], run.stderr)  # a busy or instrumented machine may be too slow
        self.assertEqual([(f["workers"], f["asked"]) for f in run.figures],
                         [(2, "< 0.3 s"), (16, "< 1 s"), (64, "< 3 s")])
        for figure in run.figures:
            self.assertEqual([*figure][:7], FIELDS)
            self.assertEqual(figure["unit"], "s")
            self.assertTrue(figure["ours"], figure["verdict"])
            limit = float(figure["asked"].split()[1])
            self.assertEqual(figure["verdict"], "holds" if figure["ours"] < limit else "FALLS SHORT")
        self.assertIn("bench/setup-peers.sh", run.figures[0]["notes"][0])
        self.assertEqual(run.figures[2]["notes"], [], "with 64 workers there is no peer")

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two workers need two cores")
    def test_two_workers_train_together(self):
        run = bench("dp-resnet50", "--quick", "--batch", "1")
        torch, alone, copies = run.figures
        self.assertEqual([f["peer_name"] for f in run.figures],
                         ["torch DDP", "one worker x 2", "two copies side by side"], run.stderr)
        self.assertEqual([f["asked"] for f in run.figures], [">= 1.6", ">= 0.97", None])
        self.assertIn("not measured: no torch", torch["verdict"])
        self.assertIn(alone["verdict"], ["holds", "FALLS SHORT"])
        self.assertEqual(copies["verdict"], "a limit")
        for figure in [alone, copies]:
            self.assertEqual((figure["workers"], figure["threads"], figure["unit"]), (2, 1, "images/s"))
            self.assertAlmostEqual(figure["ratio"] / (figure["ours"] / figure["peer"]), 1, places=3)


class MadeUpAllReduce(unittest.TestCase):
    """bench_allreduce is a script that answers as it would."""
    SIZES = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 25 << 20, 100 << 20]

    def run_with(self, times):
        with tempfile.TemporaryDirectory() as build:
            for name, text in [("tools/fleetx", ""), ("bench/bench_allreduce", "cat <<'END'\n" + "".join(
                    json.dumps({"bytes": size, "us": times(size)}) + "\n" for size in self.SIZES) + "END\n")]:
                program = pathlib.Path(build, name)
                program.parent.mkdir()
                program.write_text("#!/usr/bin/env bash\n" + text)
                program.chmod(0o755)
            return bench("allreduce", "--quick", "--tool", f"{build}/tools/fleetx")

    def test_rates_of_every_size(self):
        run = self.run_with(lambda size: {"ours": size / 1e4, "Open MPI": size / 5e3, "Gloo": size / 50,
                                          "memcpy": size / 1e4})
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(len(run.figures), 2 * (9 + 2 + 1))
        first = run.figures[0]
        self.assertEqual([*first][:7], FIELDS)
        self.assertEqual([first[f] for f in FIELDS], ["allreduce", 10, 5, "Open MPI", "GB/s", 2, ">= 1"])
        self.assertEqual([first["model"], first["workers"]], ["1 KB", 2])
        self.assertEqual([(f["model"], f["ratio"], f["asked"]) for f in run.figures if f["peer_name"] == "Gloo"],
                         2 * [("64 KB", 200, ">= 100"), ("25 MB", 200, ">= 8")])

    def test_slower_at_one_size(self):
        run = self.run_with(lambda size: {"ours": 2.0, "Open MPI": 1.0 if size == 1 << 20 else 3.0, "Gloo": 1e3,
                                          "memcpy": 2.0})
        self.assertEqual(run.returncode, 1)
        self.assertEqual([f["model"] for f in run.figures if f["verdict"] == "FALLS SHORT"], ["1 MB", "1 MB"])

    def test_an_absent_peer(self):
        run = self.run_with(lambda size: {"ours": 1.0, "Gloo": 1e3, "memcpy": 1.0})
        self.assertEqual(run.returncode, 3)
        self.assertEqual({f["verdict"] for f in run.figures if f["peer_name"] == "Open MPI"},
                         {"not measured: no figure of Open MPI"})


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two threads need two cores")
class MadeUpBusy(unittest.TestCase):
    """fleetx is a script that says how long two threads take, and notes who is around."""
    BESIDE = ["idle", "1 loop", "2 loops", "1,000 wake-ups/s", "cgroup of 1.5 cores"]

    def run_with(self, seconds_of_two, *arguments, torch=False, fails=False):
        with tempfile.TemporaryDirectory() as folder:
            self.notes = pathlib.Path(folder, "notes")
            script = f"""#!/usr/bin/env bash
                echo "$0 $(pgrep -f bench/competitor.py -P $PPID | tr '\\n' ' ')| $(grep :cpu: /proc/self/cgroup)" >> {self.notes}
                {"exit 5" if fails else ""}
                seconds=1; [[ $* == *"--threads 2"* ]] && seconds={seconds_of_two}
                if [[ $0 == *before* ]]; then echo '{{"best_s": 1, "loss": 1}}'; exit; fi
                echo '{{"best_s": '$seconds', "loss": 1, "isa": "avx2", "total_s": '$seconds'}}'
                """
            for name in ["tools/fleetx", "before/fleetx", "bin/python"]:
                program = pathlib.Path(folder, name)
                program.parent.mkdir()
                program.write_text(script if torch or "python" not in name else "#!/usr/bin/env bash\nexit 1\n")
                program.chmod(0o755)
            run = bench("busy", *(["--quick"] if not torch else []), "--tool", f"{folder}/tools/fleetx", *[a.format(folder) for a in arguments],
                        venv=folder)
            run.notes = self.notes.read_text().splitlines()
            return run

    def test_faster_or_as_fast(self):
        run = self.run_with(1.05)
        measured = [b for b in self.BESIDE if f"{b} is not measured" not in run.stderr]
        self.assertEqual(measured[:4], self.BESIDE[:4], run.stderr)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("busy: PyTorch is left out of a quick run", run.stderr)
        models = ["resnet50", "tiny-mlp", "mlp"]
        self.assertEqual([(f["beside"], f["model"]) for f in run.figures], [(b, m) for b in measured for m in models])
        for figure in run.figures:
            self.assertEqual([*figure][:7], FIELDS)
            self.assertEqual([figure["ours"], figure["peer"], figure["peer_name"], figure["who"], figure["threads"]],
                             [1.05, 1, "1 thread", "fleetx", 2])
            self.assertEqual((figure["asked"], figure["verdict"]),
                             (None, "a limit") if figure["beside"] == "idle" else ("<= 1.1", "holds"))
        self.check_neighbours(run)

    def check_neighbours(self, run):
        """Competitors and the group were there, and are gone."""
        pids = [note.split("|")[0].split()[1:] for note in run.notes]
        self.assertEqual([len(p) for p in pids[:72]], [n for n in [0, 1, 2, 1] for _ in range(18)], run.notes)
        for pid in {p for list_ in pids for p in list_}:
            self.assertFalse(pathlib.Path("/proc", pid).exists(), pid)
        groups = ["fleetx-bench-" in note for note in run.notes]
        if "is not measured" not in run.stderr:
            self.assertEqual(groups, 72 * [False] + 18 * [True])

    def test_slower_than_one_thread_and_than_before(self):
        run = self.run_with(1.2, "--before", "{}/before/fleetx")
        self.assertEqual(run.returncode, 1)
        self.assertEqual({f["verdict"] for f in run.figures if f["beside"] != "idle"}, {"FALLS SHORT"})
        self.assertEqual([(f["peer_name"], f["asked"], f["verdict"]) for f in run.figures if f["beside"] == "idle"],
                         3 * [("1 thread", None, "a limit"), ("before", "<= 1.02", "FALLS SHORT")])

    def test_pytorch_is_measured_but_not_judged(self):
        run = self.run_with(1, torch=True)
        torch = [f for f in run.figures if f["who"] == "torch"]
        self.assertEqual({f["verdict"] for f in torch}, {"a limit"})
        self.assertEqual(len(torch) * 2, len(run.figures))

    def test_ours_fails(self):
        run = self.run_with(1, fails=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("exit code 5", run.figures[0]["notes"][0])


class WithMadeUpPeers(unittest.TestCase):
    """The interpreter of the peers is a script that answers as they would."""

    def run_with(self, script, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            self.venv(folder, script)
            return bench(*arguments, venv=folder)

    def venv(self, folder, script):
        python = pathlib.Path(folder) / "bin/python"
        python.parent.mkdir()
        python.write_text(f"#!/usr/bin/env bash\n[[ $1 == -c ]] && exit 0  # it is installed\n{script}\n")
        python.chmod(0o755)

    def answer(self, seconds, mib=1.0):
        return f"""echo '{{"best_s": {seconds}, "items_per_s": 1, "peak_mib": {mib}, "loss": 1, "version": "9.9"}}'"""

    def test_the_best_mode_counts(self):
        run = self.run_with(f"if [[ $* == *compile* ]]; then {self.answer(10)}; else {self.answer(20)}; fi",
                            "tiny-mlp", "--quick", "--threads", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        torch = run.figures[0]
        self.assertEqual(torch["peer_name"], "torch 9.9 compile")
        self.assertEqual(torch["modes"], {"default": 0.05, "compile": 0.1})
        self.assertEqual(torch["peer"], 0.1)
        self.assertAlmostEqual(torch["ratio"] / (torch["ours"] / 0.1), 1, places=3)

    def test_all_take_turns(self):
        run = self.run_with(self.answer(1), "tiny-mlp", "--threads", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        turns = [re.match(r"round \d/3 .*: (.+) \S+ steps/s", line)[1] for line in run.stderr.splitlines() if line]
        self.assertEqual(turns, 3 * ["fleetx", "torch default", "torch compile", "paddle static"])

    def test_instruction_sets_are_told_to_everybody(self):
        says = """case $ONEDNN_MAX_CPU_ISA,$ATEN_CPU_CAPABILITY,$MKL_ENABLE_INSTRUCTIONS in
                  AVX2,avx2,AVX2 | AVX512_CORE,avx512,AVX512) ;; *) exit 1 ;; esac; """
        for isa in ["avx2", "avx512"]:
            run = self.run_with(says + self.answer(1), "tiny-mlp", "--quick", "--threads", "1", "--isa", isa)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertLessEqual({f["isa"] for f in run.figures}, {"sse", "avx2", isa})

    def test_a_ratio_that_falls_short(self):
        run = self.run_with(self.answer(1e-9), "tiny-mlp", "--quick", "--threads", "1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("FALLS SHORT", run.stdout)

    def test_less_memory_is_better(self):
        run = self.run_with(self.answer(1, mib=1e6), "memory", "--quick", "--threads", "1", "--batch", "1")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(run.figures[0]["asked"], "<= 0.75")
        self.assertEqual(run.figures[0]["unit"], "MiB")
        self.assertLess(run.figures[0]["ratio"], 0.01)

    def test_a_peer_that_crashes_does_not_stop_the_rest(self):
        run = self.run_with(f"if [[ $* == *paddle* ]]; then echo 'out of luck' >&2; exit 7; fi; {self.answer(1)}",
                            "tiny-mlp", "--quick", "--threads", "1")
        self.assertEqual(run.returncode, 3, run.stderr)
        torch, paddle = run.figures
        self.assertEqual(torch["verdict"], "holds")
        self.assertEqual(paddle["verdict"], "not measured: paddle static: exit code 7: out of luck")

    def test_nonsense_is_no_figure(self):
        for script, part in [("true", "it printed no figures"), ("echo hello", "it printed no figures"),
                             (self.answer(1).replace('"loss": 1', '"loss": NaN'), "the loss became nan")]:
            run = self.run_with(script, "tiny-mlp", "--quick", "--threads", "1")
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assertIn(part, run.figures[0]["verdict"])

    def test_a_peer_that_hangs_is_ended(self):
        run = self.run_with("sleep 100", "tiny-mlp", "--quick", "--threads", "1", "--timeout", "1")
        self.assertEqual(run.returncode, 3)
        self.assertIn("torch default: no answer in 1 s", run.figures[0]["notes"])

    def test_interruption_ends_the_children(self):
        with tempfile.TemporaryDirectory() as folder:
            pid = pathlib.Path(folder) / "pid"
            self.venv(folder, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 100")
            run = subprocess.Popen([sys.executable, REPO / "bench/run", "--tool", TOOL, "--venv", folder, "tiny-mlp",
                                    "--quick", "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 60
            while not pid.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=60)
            self.assertEqual(run.returncode, 130)
            with self.assertRaises(ProcessLookupError):
                os.kill(int(pid.read_text()), 0)


if __name__ == "__main__":
    unittest.main()
