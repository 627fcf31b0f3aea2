#!/usr/bin/python3
"""Compiles the strategies of docs/add-a-strategy.md as they stand there, switches them on as a user would, and trains.
usage: doc_strategies_test.py BUILD_DIR COMPILER"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from doc_page import Compiler, listings  # noqa: E402

DRIVER = r'''
#include <cstdio>
#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/executor.h"
using namespace fleetx;

int main() {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = nn::mean(nn::square(nn::fc(b.data("x", f32, {-1, 4}), {.size = 3})));
  fleet::DistributedStrategy s;
  s.set("scale_gradients", true);
  s.set_configs("scale_gradients_configs", {{"factor", 0.5}});
  s.set("center_inputs", true);
  s.set_configs("center_inputs_configs", {{"shift", -0.5}});
  s.set("stop_updates", true);
  s.set_configs("stop_updates_configs", {{"steps", 2}});
  auto sgd = std::make_shared<optim::Sgd>(optim::SgdOptions{.lr = 0.1});
  fleet::DistributedOptimizer(sgd, s, mesh_of({}, 1, 0)).minimize(loss);
  std::printf("%s", ir::to_text(main).c_str());
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  Tensor x(f32, {2, 4});
  for (float& v : x.data<float>()) v = 2;
  for (int step = 0; step < 4; ++step)
    std::printf("loss %.6f\n", exe.run(main, scope, {{"x", x}}, {loss.name()})[0].item<float>());
}
'''


def main():
    compiler = Compiler(*sys.argv[1:])
    files = {pathlib.Path(path).name: code for path, code in listings("add-a-strategy.md").items()}
    assert set(files) == {"scale_gradients.cc", "center_inputs.cc", "stop_updates.cc"}, sorted(files)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, code in {"main.cc": DRIVER, **files}.items():
            (folder / name).write_text(code)
        compiler(*sorted(folder.glob("*.cc")), "-o", folder / "trained")
        out = subprocess.run([str(folder / "trained")], check=True, capture_output=True, text=True).stdout
    # Forward: backward was made of what the strategy left; gradients: updates read the scaled ones; updates: a guard.
    assert "x@CENTERED = scale(x) {bias=-0.5" in out, out
    assert re.search(r"fc_grad\(x@CENTERED", out), out
    assert re.search(r"sgd\(\[fc_0\.w_0\], \[fc_0\.w_0@GRAD@SCALED\]", out), out
    assert len(re.findall(r"= sgd\(.* if on", out)) == 2, out
    losses = [float(v) for v in re.findall(r"^loss (\S+)", out, flags=re.M)]
    assert losses[0] > losses[1] > losses[2] == losses[3], losses  # two updates, then none
    print("the strategies of docs/add-a-strategy.md compile, can be switched on, and train")


main()
