#!/usr/bin/python3
"""Compiles the strategies of docs/add-a-strategy.md as they stand there, switches them on as a user would, and trains.
usage: doc_strategies_test.py BUILD_DIR COMPILER"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

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


def listings():
    """{path: code} of the sections whose headings name a file of fleetx/strategies/."""
    text = (ROOT / "docs/add-a-strategy.md").read_text()
    files = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = section.partition("\n")
        path = re.search(r"`fleetx/strategies/(\w+)\.cc`", heading)
        if path:
            files[path.group(1)] = "".join(re.findall(r"```cpp\n(.*?)```", body, flags=re.S))
    return files


def main():
    build, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    files = listings()
    assert set(files) == {"scale_gradients", "center_inputs", "stop_updates"}, sorted(files)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "main.cc").write_text(DRIVER)
        for name, code in files.items():
            (folder / f"{name}.cc").write_text(code)
        library = build / "fleetx"
        subprocess.run([compiler, "-std=c++20", "-O0", f"-I{ROOT}", f"-I{library}", f"-I{build / 'made/include'}",
                        "-fopenmp", "-Wall", "-Wextra", "-Werror", "-Wno-psabi",
                        *sorted(map(str, folder.glob("*.cc"))), f"-L{library}", "-lfleetx",
                        f"-Wl,-rpath,{library}", "-o", str(folder / "trained")], check=True)
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
