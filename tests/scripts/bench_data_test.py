"""Runs bench/data without a peer: its lines and exit code. Argument: the build folder."""
import json
import pathlib
import subprocess
import sys
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = sys.argv.pop(1)


class WithoutPeer(unittest.TestCase):
    def test_figures(self):
        run = subprocess.run([sys.executable, REPO / "bench/data", "--build", BUILD, "--venv", "no-such-folder",
                              "--size", "64", "--seconds", "0.6", "--rounds", "1"],
                             capture_output=True, text=True, check=False, timeout=120)
        lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        self.assertEqual([line["peer_name"] for line in lines],
                         ["libjpeg-turbo", "missing: bench/setup-peers.sh installs it"], run.stderr)
        self.assertGreater(lines[0]["ours"], 0)
        self.assertAlmostEqual(lines[0]["ratio"], lines[0]["ours"] / lines[0]["peer"], places=2)
        self.assertIsNone(lines[1]["ratio"])
        # 64 pixels make decoding so cheap that it falls short of what is asked.
        self.assertEqual(run.returncode, 3 if lines[0]["ratio"] >= 0.9 else 1)
        self.assertIn("not measured", run.stdout)


unittest.main()
