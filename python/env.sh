# Makes the packages of a build tree known to this shell:  source python/env.sh [BUILD_FOLDER]
# Afterwards `python`, `import paddle`, `import fleetx` and `fleetrun` are those of the build.
_fleetx_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]:-$0}")/.." && pwd)
_fleetx_build=${1:-${FLEETX_BUILD:-$_fleetx_root/build/release}}
if ls "$_fleetx_build"/python/_fleetx.*.so >/dev/null 2>&1; then
  export PYTHONPATH=$_fleetx_root/python:$_fleetx_build/python${PYTHONPATH:+:$PYTHONPATH}
  export PATH=$_fleetx_build/python/bin:$_fleetx_build/tools:$PATH
else
  echo "env.sh: no Python module in $_fleetx_build; build it: scripts/build release fleetx_python fleetrun" >&2
fi
unset _fleetx_root _fleetx_build
