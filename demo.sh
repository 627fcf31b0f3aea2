#!/usr/bin/env bash
# Installs what is missing, builds FleetX and trains a small network on real images with two workers.
# The first run takes some minutes, most of them compiling; later ones start at once. Arguments go to
# the example: ./demo.sh --help
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
trap 'echo "demo: failed in line $LINENO; the lines above say why" >&2' ERR

echo "[1/3] packages"
scripts/setup.sh build
echo "[2/3] build"
scripts/build release -DFLEETX_TESTS=OFF lenet_fashion_mnist fleetx_tool fleetrun
echo "[3/3] train LeNet on Fashion-MNIST (60,000 images of clothes, ten kinds) with two workers"
build/release/tools/fleetrun --nproc_per_node=2 --log_dir=build/demo-log \
  build/release/examples/lenet_fashion_mnist --checkpoint build/demo "$@"
cat <<'END'

What to try next:
  build/release/tools/fleetx show build/demo/model          the trained network as readable text
  build/release/tools/fleetx plan build/demo/model --batch 64    how it runs: layouts, memory, flops
  build/release/tools/fleetx bench resnet50 --batch 16 --steps 5  speed on this machine
  build/release/tools/fleetx doctor                         what this machine can do
  examples/lenet_fashion_mnist.cc                           the program that just ran
  build/release/examples/lenet_fashion_mnist --help         the same with one worker
In Python:
  scripts/build release fleetx_python && source python/env.sh && fleetrun --gpus=0,1 examples/lenet_fashion_mnist.py
END
