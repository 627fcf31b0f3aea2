"""Runs ours and the peers, each in a process of its own on the same cores, and reads the line it prints."""
import json
import math
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench/peers"
SETUP = "bench/setup-peers.sh"

# How each library is told to go no further than AVX2.
AVX2_ONLY = {"FLEETX_MAX_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2",
             "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}


class Failed(Exception):
    """A run gave no figure; the text says why."""


class Runner:
    def __init__(self, tool, venv, isa, timeout):
        self.tool, self.python, self.timeout = tool, venv / "bin/python", timeout
        self.env = {**os.environ, **(AVX2_ONLY if isa == "avx2" else {}),
                    "FLEETX_LOG": "error", "PYTHONDONTWRITEBYTECODE": "1",
                    "TORCHINDUCTOR_CACHE_DIR": str(ROOT / "build/bench-cache"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}

    def ours(self, case):
        if case.model == "copy":
            command = [sys.executable, ROOT / "bench/copy_rate.py"]
        else:
            command = [self.tool, "bench", case.model, "--json"]
        return self._run(case, command)

    def peer(self, case, name, mode):
        return self._run(case, [self.python, PEERS / f"{name}_peer.py", case.model, "--mode", mode])

    def missing(self, name):
        """Why this peer cannot be measured, or None."""
        if not self.python.exists():
            return f"no {name}: {SETUP} installs it"
        look = f"import importlib.util as u, sys; sys.exit(not u.find_spec('{name}'))"
        found = subprocess.run([self.python, "-c", look], stderr=subprocess.DEVNULL, check=False)
        return f"no {name} in {self.python.parent.parent}: {SETUP} installs it" if found.returncode else None

    def _run(self, case, command):
        command = [*map(str, command), "--batch", str(case.batch), "--threads", str(case.threads),
                   "--steps", str(case.steps), "--warmup", str(case.warmup)] + ["--test"] * case.test
        cores = sorted(os.sched_getaffinity(0))[-case.threads:]
        if len(cores) < case.threads:
            raise Failed(f"{case.threads} threads, but this process may use {len(cores)} core(s)")
        count = str(case.threads)
        usage = Usage(cores)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True,
            env={**self.env, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count},
            preexec_fn=lambda: os.sched_setaffinity(0, cores))
        try:
            out, err = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"no answer in {self.timeout} s") from None
        finally:
            end(process)
        if process.returncode:
            raise Failed(reason(process.returncode, err))
        try:
            line = json.loads(out.strip().splitlines()[-1])
        except (IndexError, ValueError):
            raise Failed("it printed no figures") from None
        loss = line.get("loss")
        if loss is not None and not math.isfinite(loss):
            raise Failed(f"the loss became {loss}")
        return {"steps_per_s": 1 / line["best_s"], "others": usage.of_others(), **line}


class Usage:
    """How much of some cores other programs take while one of ours runs there."""

    def __init__(self, cores):
        self.cores = cores
        self.start = self._now()

    def of_others(self):
        wall, busy, own = (now - then for now, then in zip(self._now(), self.start))
        return max(0.0, (busy - own) / (wall * len(self.cores)))

    def _now(self):
        names = {f"cpu{core}" for core in self.cores}
        lines = (line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines())
        ticks = sum(sum(map(int, [*line[1:4], *line[6:9]])) for line in lines if line[0] in names)
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


def end(process):
    """Ends the process and what it started, such as compilers."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def reason(code, err):
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return f"exit code {code}: {lines[-1] if lines else 'no message'}"
