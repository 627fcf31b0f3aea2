#!/usr/bin/env python3
"""bench/pairs with made-up tools: which build runs when, what is judged, what is refused."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PAIRS = pathlib.Path(__file__).resolve().parents[2] / "bench/pairs"


class Pairs(unittest.TestCase):
    def run_with(self, speed_now, *arguments):
        """The earlier build makes 100 steps a second."""
        with tempfile.TemporaryDirectory() as folder:
            self.order = pathlib.Path(folder, "order")
            tools = {}
            for name, speed in [("before", 100), ("now", speed_now)]:
                tools[name] = pathlib.Path(folder, name, "tools/fleetx")
                tools[name].parent.mkdir(parents=True)
                tools[name].write_text(f"#!/usr/bin/env bash\necho {name} >> {self.order}\n"
                                       f"""echo '{{"best_s": 1, "loss": 1, "steps_per_s": {speed}}}'\n""")
                tools[name].chmod(0o755)
            run = subprocess.run([sys.executable, PAIRS, "--before", tools["before"], "--tool", tools["now"], *arguments],
                                 capture_output=True, text=True, check=False, timeout=60)
            run.order = self.order.read_text().split() if self.order.exists() else []
            run.figures = [json.loads(line) for line in run.stdout.splitlines()]
            return run

    def test_runs_alternate_and_the_median_is_judged(self):
        run = self.run_with(99, "--pairs", "3", "mlp")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.order, ["before", "now", "now", "before", "before", "now"])
        self.assertEqual([(f["ratio"], f["pairs"], f["verdict"]) for f in run.figures], [(0.99, 3, "holds")])

    def test_what_is_slower_is_measured_again(self):
        run = self.run_with(90, "--pairs", "2", "mlp")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual([(f["ratio"], f["pairs"], f["verdict"]) for f in run.figures], [(0.9, 6, "falls short")])
        self.assertEqual(self.run_with(90, "--pairs", "2", "--least", "0.8", "mlp").returncode, 0)

    def test_bad_usage(self):
        for arguments, part in [(["allreduce"], "no bench 'allreduce' to compare"),
                                (["--pairs", "0", "mlp"], "must be positive"),
                                (["--tool", "nothing-here", "mlp"], "scripts/build release")]:
            run = self.run_with(100, *arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn(part, run.stderr)


if __name__ == "__main__":
    unittest.main()
