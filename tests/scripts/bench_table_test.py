"""bench/table: records become rows, the page keeps its text, and docs/performance.md has the table of its records."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(REPO / "bench"))

from machine import machine_name  # noqa: E402

PAGE = "before\n<!-- bench/table begin -->\nstale line\n<!-- bench/table end -->\nafter\n"


def record(**fields):
    return {"bench": "mlp", "ours": 598.4, "peer": 403, "peer_name": "torch 9.9 default", "unit": "steps/s",
            "ratio": 1.485, "asked": ">= 1.2", "model": "mlp", "batch": 64, "workers": 1, "threads": 1, "isa": "avx2",
            "verdict": "holds", "disturbed": False, "notes": [], "machine": "M, 2 cores, AVX2", "date": "2026-01-02",
            **fields}


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_with(self, files, *arguments):
        paths = []
        for name, content in files.items():
            paths.append(self.folder / name)
            paths[-1].write_text(content if isinstance(content, str) else
                                 "".join(json.dumps(line) + "\n" for line in content))
        return subprocess.run([sys.executable, REPO / "bench/table", *paths, *arguments], capture_output=True,
                              text=True, check=False, timeout=60)

    def rows(self, files):
        run = self.run_with(files)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in run.stdout.splitlines()[2:]]

    def test_a_row_has_the_case_its_peers_and_the_machine(self):
        rows = self.rows({"a.json": [record(), record(peer=200, peer_name="paddle 3", ratio=3, asked=">= 1",
                                                      notes=["a remark"])]})
        self.assertEqual(rows[0][0], "**M, 2 cores, AVX2**")
        self.assertEqual(rows[1], ["mlp batch 64, 1 thread", "avx2", "598 steps/s", "403 torch 9.9 default", "1.49",
                                   ">= 1.2", "holds", "200 paddle 3 (3, >= 1, holds)", "2026-01-02", "a remark"])
        self.assertEqual(len(rows), 2)

    def test_the_last_measurement_of_a_case_counts(self):
        old, new = record(ours=1), record(ours=2, date="2026-03-01", peer_name="torch 10 default")
        for files in [{"a.json": [old], "b.json": [new]}, {"a.json": [new], "b.json": [old]}]:
            rows = self.rows(files)
            self.assertEqual([row[2] for row in rows[1:]], ["2 steps/s"])
            self.assertEqual(rows[1][7], "", "peers of the older run are gone with it")

    def test_cases_and_machines_are_told_apart(self):
        rows = self.rows({"a.json": [record(), record(threads=2), record(isa="amx"), record(batch=8),
                                     record(machine="N, 4 cores, AMX")]})
        self.assertEqual([row[0] for row in rows if row[0].startswith("**")],
                         ["**M, 2 cores, AVX2**", "**N, 4 cores, AMX**"])
        self.assertEqual(len(rows), 7)

    def test_what_was_not_measured_is_left_out_and_disturbance_is_shown(self):
        rows = self.rows({"a.json": [record(peer=None, ratio=None, verdict="not measured: no torch"),
                                     record(batch=8, disturbed=True)]})
        self.assertEqual([row[0] for row in rows[1:]], ["mlp batch 8, 1 thread"])
        self.assertEqual(rows[1][6], "holds (disturbed)")

    def test_the_output_of_bench_run_can_be_kept_as_it_is(self):
        rows = self.rows({"a.json": json.dumps(record()) + "\n\nbench  ours  peer\n-----\nmlp  598\n"})
        self.assertEqual(len(rows), 2)

    def test_write_and_check(self):
        page = self.folder / "page.md"
        page.write_text(PAGE)
        files = {"a.json": [record()]}
        check = self.run_with(files, "--page", str(page), "--check")
        self.assertEqual(check.returncode, 1)
        self.assertIn("bench/table --write", check.stderr)
        self.assertEqual(self.run_with(files, "--page", str(page), "--write").returncode, 0)
        text = page.read_text()
        self.assertTrue(text.startswith("before\n<!--") and text.endswith("-->\nafter\n"), text)
        self.assertNotIn("stale line", text)
        self.assertIn("| mlp batch 64, 1 thread |", text)
        self.assertEqual(self.run_with(files, "--page", str(page), "--check").returncode, 0)

    def test_bad_input_is_named(self):
        lacking = record()
        del lacking["machine"]
        page = self.folder / "page.md"
        page.write_text("no markers\n")
        for files, arguments, part in [({"a.json": '{"bench": '}, [], "a.json:1: not a line of JSON"),
                                       ({"a.json": [record(), lacking]}, [], "a.json:2: a record without machine"),
                                       ({"a.json": [record()]}, ["--write", "--page", str(page)], "lacks the lines")]:
            run = self.run_with(files, *arguments)
            self.assertEqual(run.returncode, 2)
            self.assertIn(part, run.stderr)

    def test_the_page_of_this_repository_has_the_table_of_its_records(self):
        run = self.run_with({}, "--check")
        self.assertEqual(run.returncode, 0, run.stderr)


class MachineName(unittest.TestCase):
    def test_model_cores_and_instruction_set(self):
        one = "processor\t: {}\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Gold 6430 CPU @ 2.10GHz\nflags\t\t: {}\n\n"
        text = "".join(one.format(i, "fpu avx2 avx512f amx_tile") for i in range(2))
        self.assertEqual(machine_name(text), "Intel Xeon Gold 6430 CPU (model 143), 2 cores, AMX")
        self.assertEqual(machine_name(one.format(0, "fpu avx2")), "Intel Xeon Gold 6430 CPU (model 143), 1 core, AVX2")
        self.assertEqual(machine_name(""), "unknown CPU, 0 cores, SSE")
        self.assertRegex(machine_name(), r".+, \d+ cores?, (SSE|AVX2|AVX-512|AMX)$")


if __name__ == "__main__":
    unittest.main()
