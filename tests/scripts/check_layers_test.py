"""Shows that scripts/check_layers accepts a tidy tree and catches each violation, on made-up trees."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]

TIDY = {
    "fleetx/base/env.cc": '#include <cstdlib>\nconst char* f() { return getenv("A"); }\n',
    "fleetx/ir/program.cc": '#include "fleetx/base/error.h"\n#include "fleetx/ir/program.pb.h"\n',
    "fleetx/ops/relu.cc": '#include <dnnl.hpp>\n#include "fleetx/kernel/op.h"\nFLEETX_OP(relu);\n',
    "fleetx/ops/helper.cc": "#include <vector>\n",
    "tests/ops/relu_test.cc": '#include <gtest/gtest.h>\n#include "fleetx/train/trainer.h"\n',
    "tools/main.cc": '#include <CLI/CLI.hpp>\n#include "fleetx/ops/x.h"\n',
}


class CheckLayers(unittest.TestCase):
    def check(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {**TIDY, **changes}
            files["scripts/layers.txt"] = (REPO / "scripts/layers.txt").read_text()
            for name, text in files.items():
                if text is not None:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text)
            run = subprocess.run([sys.executable, REPO / "scripts/check_layers", root],
                                 capture_output=True, text=True, check=False)
            return run.returncode, run.stdout

    def expect_error(self, changes, *messages):
        code, out = self.check(changes)
        self.assertEqual(code, 1, out)
        self.assertEqual(len(out.splitlines()), 1, out)
        for message in messages:
            self.assertIn(message, out)

    def test_tidy_tree(self):
        self.assertEqual(self.check({}), (0, "check_layers: ok\n"))

    def test_wrong_layer(self):
        self.expect_error({"fleetx/ir/a.cc": '\n#include "fleetx/kernel/op.h"\n'},
                          "fleetx/ir/a.cc:2", 'ir may not include "fleetx/kernel/op.h"')

    def test_strategies_do_not_see_kernels(self):
        self.expect_error({"fleetx/strategies/a.h": '#include "fleetx/kernel/kernel.h"\n'},
                          "strategies may not include")

    def test_third_party_header_outside_its_folder(self):
        for header, folder in (("dnnl.hpp", "runtime"), ("google/protobuf/message.h", "train"),
                               ("mpi.h", "ps"), ("unicode/uchar.h", "ir"),
                               ("turbojpeg.h", "train"), ("png.h", "data"),
                               ("openssl/sha.h", "ir"), ("pybind11/pybind11.h", "train")):
            self.expect_error({f"fleetx/{folder}/a.cc": f"#include <{header}>\n"},
                              f"{folder} may not include <{header}>")

    def test_unknown_third_party_header(self):
        self.expect_error({"fleetx/base/a.h": "#include <boost/any.hpp>\n"},
                          "<boost/any.hpp> is not in scripts/layers.txt")

    def test_generated_header(self):
        self.expect_error({"fleetx/train/a.cc": '#include "fleetx/ir/program.pb.h"\n'},
                          "is private to ir")

    def test_unknown_folder(self):
        self.expect_error({"fleetx/extra/a.h": "\n"}, "folder 'extra' is not in")

    def test_long_file(self):
        self.assertEqual(self.check({"tests/ops/a.cc": "\n" * 600})[0], 0)
        self.expect_error({"tests/ops/a.cc": "\n" * 601}, "tests/ops/a.cc: 601 lines")

    def test_op_strategy_and_optimizer_without_test(self):
        self.expect_error({"tests/ops/relu_test.cc": None}, "no test tests/ops/relu_test.cc")
        self.expect_error({"fleetx/strategies/amp.cc": "FLEETX_STRATEGY(amp);\n"},
                          "no test tests/strategies/amp_test.cc")
        self.expect_error({"fleetx/optimizers/foo.h": "FLEETX_OPTIMIZER(Foo);\n"},
                          "no test tests/optimizers/foo_test.cc")
        self.assertEqual(self.check({"fleetx/optimizers/lib/rule.h": "#define FLEETX_OPTIMIZER(x)\n"})[0], 0)

    def test_getenv(self):
        self.expect_error({"tools/main.cc": 'int x = std::getenv("A") ? 1 : 0;\n'},
                          "tools/main.cc:1: getenv")


unittest.main()
