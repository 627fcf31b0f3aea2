"""What is compiled when only the packages of `scripts/setup.sh test` are there.
usage: configure_test.py BUILD-FOLDER"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))


class WithoutPackagesOfPeers(unittest.TestCase):
    def test_nothing_that_is_built_needs_gloo(self):
        compiler = next(line.split("=", 1)[1] for line in (BUILD / "CMakeCache.txt").read_text().splitlines()
                        if line.startswith("CMAKE_CXX_COMPILER:"))
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}",
                                  "-DCMAKE_DISABLE_FIND_PACKAGE_Gloo=TRUE"], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            rules = pathlib.Path(folder, "build.ninja").read_text()
        sources = {word for word in rules.split() if word.startswith(str(ROOT)) and word.endswith(".cc")}
        self.assertGreater(len(sources), 300)  # it is the whole project
        for source in sources:
            self.assertNotIn("#include <gloo/", pathlib.Path(source).read_text(), source)
        self.assertEqual([line for line in rules.splitlines() if "-lgloo" in line or "libgloo" in line], [])


if __name__ == "__main__":
    unittest.main()
