#!/usr/bin/python3
"""Compiles the optimizer of docs/add-an-optimizer.md as it stands there, and trains with it in C++ and in Python.
usage: doc_optimizer_test.py BUILD_DIR COMPILER [PYTHON]"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from doc_page import ROOT, Compiler, listings  # noqa: E402

HEADER, TEST = "fleetx/optimizers/signum.h", "tests/optimizers/signum_test.cc"

# The file that the build makes of an optimizer (fleetx/CMakeLists.txt).
MADE = f'#include "fleetx/ops/lib/register_optimizer.h"\n#include "{HEADER}"\n'

DRIVER = r'''
#include <cstdio>
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/optimizers/signum.h"
#include "fleetx/runtime/executor.h"
using namespace fleetx;

void train(optim::Optimizer& optimizer) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var w = b.parameter({.name = "w", .shape = {3}});
  optimizer.minimize(nn::mean(nn::square(nn::sub(w, b.data("x", f32, {3})))));
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  Tensor x(f32, {3});
  for (float& v : x.data<float>()) v = 100;
  const auto value = [&] { return scope.get("w").data<float>()[1]; };
  const float before = value();
  for (int step = 0; step < 5; ++step) exe.run(main, scope, {{"x", x}}, {});
  std::printf("moved %.6f\n", double(value() - before));
}

int main() {
  optim::Signum own({.lr = 0.01, .mu = 0.8});
  train(own);
  train(*optim::make("signum", {{"lr", 0.01}, {"mu", 0.8}}));
}
'''

SCRIPT = """
import numpy as np
import paddle
import paddle.fluid as fluid

paddle.enable_static()
for optimizer in (paddle.optimizer.Signum(0.01, momentum=0.8), fluid.optimizer.SignumOptimizer(learning_rate=0.01)):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        w = paddle.static.create_parameter([3], "float32", name="w")
        optimizer.minimize(paddle.mean(paddle.square(w - 100.0)))
    exe, scope = paddle.static.Executor(), paddle.static.Scope()
    with paddle.static.scope_guard(scope):
        exe.run(startup)
        before = np.array(scope.find_var("w").get_tensor())
        for _ in range(5):
            exe.run(main)
        print("moved %.6f" % (np.array(scope.find_var("w").get_tensor()) - before)[1])
try:
    paddle.optimizer.Signum(0.01, momentum=1.5)
except ValueError as error:
    print("refused", error)
"""


def main():
    build, cxx, *python = sys.argv[1:]
    compiler = Compiler(build, cxx)
    files = listings("add-an-optimizer.md")
    assert set(files) == {HEADER, TEST}, sorted(files)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, code in {**files, "made.cc": MADE, "main.cc": DRIVER}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(code)
        compiler(f"-I{folder}", "-fsyntax-only", folder / TEST)
        compiler(f"-I{folder}", "-shared", "-fPIC", folder / "made.cc", "-o", folder / "libsignum.so")
        compiler(f"-I{folder}", folder / "main.cc", f"-L{folder}", "-Wl,--no-as-needed", "-lsignum",
                 f"-Wl,-rpath,{folder}", "-o", folder / "trained")
        out = subprocess.run([str(folder / "trained")], check=True, capture_output=True, text=True).stdout
        assert out.splitlines() == ["moved 0.050000"] * 2, out  # five steps of 0.01, whatever the gradient
        if python:  # the classes are made from what is registered when the module is imported
            path = f"{ROOT / 'python'}:{pathlib.Path(build) / 'python'}"
            out = subprocess.run([*python, "-c", SCRIPT], check=True, capture_output=True, text=True, env={
                **os.environ, "PYTHONPATH": path, "LD_PRELOAD": str(folder / "libsignum.so"), "PYTHONDONTWRITEBYTECODE": "1"}).stdout
            moved, refused = out.splitlines()[:2], out.splitlines()[2]
            assert moved == ["moved 0.050000"] * 2, out
            assert "must be in [0, 1), got 1.5" in refused, out
    print("the optimizer of docs/add-an-optimizer.md compiles and trains" + (", in Python, too" if python else ""))


main()
