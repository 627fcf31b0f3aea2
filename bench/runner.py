"""Runs ours and the peers, each in a process of its own on the same cores, and reads the line it prints."""
import contextlib
import dataclasses
import functools
import json
import math
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

from suite import ONE_WORKER, OWN_TEXT, PADDLE_READER, TWO_COPIES

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench/peers"
SETUP = "bench/setup-peers.sh"
OWN_ENVIRONMENT = ["tensorflow", "paddle 2.6", "paddle 1.8"]  # peers that are not in the environment of the others

# How each library is told to go no further.
MAX_ISA = {isa: {"FLEETX_MAX_ISA": isa, "ONEDNN_MAX_CPU_ISA": onednn, "DNNL_MAX_CPU_ISA": onednn,
                 "MKL_ENABLE_INSTRUCTIONS": isa.upper(), "ATEN_CPU_CAPABILITY": isa}
           for isa, onednn in [("avx512", "AVX512_CORE"), ("avx2", "AVX2")]}


class Failed(Exception):
    """A run gave no figure; the text says why."""


class Runner:
    def __init__(self, tool, venv, isa, timeout):
        self.tool, self.venv, self.timeout = tool, venv, timeout
        self.build, self.python = tool.parent.parent, self.interpreter("torch")
        self.env = {**os.environ, **MAX_ISA.get(isa, {}),
                    "FLEETX_LOG": "error", "PYTHONDONTWRITEBYTECODE": "1",
                    "TORCHINDUCTOR_CACHE_DIR": str(ROOT / "build/bench-cache"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}

    def ours(self, case):
        if case.field == "seconds":
            return self._duration([self.tool.with_name("fleetrun")], case, self.build / "examples/hello_fleet")
        if case.bench == "reader":
            return self.figures([self.build / "bench/bench_reader", case.model], self.cores(1), 1)
        if case.model == "copy":
            return self._figures(case, [sys.executable, ROOT / "bench/copy_rate.py"])
        command = [self.tool, "bench", case.model, "--json"]
        if case.workers == 1:
            return self._figures(case, command)
        with tempfile.TemporaryDirectory() as logs:
            line = self._figures(case, [self.tool.with_name("fleetrun"), f"--nproc_per_node={case.workers}",
                                        f"--log_dir={logs}", *command])
        if line.get("workers") != case.workers:
            raise Failed(f"the workers did not train together: {line.get('workers', 1)} instead of {case.workers}")
        return line

    def peer(self, case, name, mode):
        if name == "torchrun":
            return self._duration([self.python, "-m", "torch.distributed.run", "--standalone"], case,
                                  PEERS / "torch_hello.py")
        if name == ONE_WORKER:
            line = self.ours(dataclasses.replace(case, workers=1))
            return {**line, case.field: case.workers * line[case.field]}
        if name == TWO_COPIES:
            return self._copies(case)
        if name == PADDLE_READER:
            with tempfile.TemporaryDirectory() as folder:
                self._finish(self._start([self.program("bench_reader"), "write", f"{folder}/text"], self.cores(1)))
                return self.figures([self.interpreter(name), PEERS / "paddle_reader.py", f"{folder}/text"], self.cores(1), 1)
        if name == OWN_TEXT:
            return self.ours(dataclasses.replace(case, model="text"))
        if name == "torch DDP":
            return self._figures(case, [self.python, PEERS / "torch_ddp_peer.py", case.model, "--mode", mode,
                                        "--workers", case.workers])
        return self._figures(case, [self.python, PEERS / f"{name}_peer.py", case.model, "--mode", mode])

    def program(self, name):
        """One of bench/, built."""
        path = self.build / "bench" / name
        if not path.exists():
            raise Failed(f"{path} is not there: scripts/setup.sh ci && scripts/build release")
        return path

    def allreduce(self, workers):
        """GB/s of ours and of the peers by size, and what others took of the cores."""
        cores = self.cores(None)
        usage = Usage(cores)
        out, err = self._finish(self._start([self.program("bench_allreduce"), workers], cores))
        print(err, file=sys.stderr)  # a table of everything
        lines = [json.loads(line) for line in out.splitlines()]
        return {line["bytes"]: {name: line["bytes"] / us / 1e3 for name, us in line["us"].items()} for line in lines}, \
            usage.of_others()

    @functools.cache
    def missing(self, peer):
        """Why this peer cannot be measured, or None."""
        module = "torch" if peer.startswith("torch") else peer.split()[0]
        if module not in ("torch", "paddle", "tensorflow", "tokenizers"):
            return None
        python = self.interpreter(peer)
        own = own_environment(peer)
        remedy = f"{SETUP} {own.replace(' ', '') or module * (module == 'tokenizers')}".rstrip() + " installs it"
        if not python.exists():
            return f"no {own or module}: {remedy}"
        look = f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"
        found = subprocess.run([python, "-c", look], stderr=subprocess.DEVNULL, check=False)
        return f"no {module} in {python.parent.parent}: {remedy}" if found.returncode else None

    def interpreter(self, peer):
        """That of the environment in which a peer is installed."""
        own = own_environment(peer).replace(" ", "")
        return self.venv.with_name("-".join(filter(None, [self.venv.name, own]))) / "bin/python"

    @property
    def own_python(self):
        """The interpreter that our packages are built for, and what it needs in the environment."""
        paths = {"PYTHONPATH": [ROOT / "python", self.build / "python"], "PATH": [self.build / "tools", os.environ["PATH"]]}
        return self.build / "python/bin/python", {name: ":".join(map(str, path)) for name, path in paths.items()}

    def _figures(self, case, command):
        """Of a program that measures itself."""
        return self.figures(command + settings(case), self.cores(case.cores), case.threads)

    def figures(self, command, cores, threads, cgroup=None):
        """The line of a program that measures itself, in a control group if its file of processes is given."""
        usage = Usage(cores)
        out, _ = self._finish(self._start(command, cores, threads, cgroup=cgroup))
        return {**figures_of(out), "others": usage.of_others()}

    def _copies(self, case):
        """As many processes at the same time as there are workers, each on cores of its own."""
        cores = self.cores(case.cores)
        command = [self.tool, "bench", case.model, "--json"] + settings(case)
        outs, usage = self.together([{"command": command, "threads": case.threads,
                                      "cores": cores[i * case.threads:(i + 1) * case.threads]}
                                     for i in range(case.workers)])
        lines = [figures_of(out) for out in outs]
        return {**lines[0], case.field: sum(line[case.field] for line in lines), "others": usage.of_others()}

    def together(self, commands):
        """What processes that run at the same time write on stdout, and the Usage of their cores.

        A command is a dict: command, and env, cores, threads and folder where they matter. When one fails, the rest is
        ended at once: they may wait for it.
        """
        everywhere = self.cores(None)
        # What passes between hosts of this machine is handled in interrupts, which belong to no process.
        usage = Usage(sorted({core for c in commands for core in c.get("cores", everywhere)}), interrupts=False)
        started, texts = [], []
        with contextlib.ExitStack() as files:
            try:
                for command in commands:
                    # Files, since a process that another one has left behind would keep a pipe open.
                    texts.append([files.enter_context(tempfile.TemporaryFile("w+")) for _ in ("stdout", "stderr")])
                    started.append(self._start(**{"cores": everywhere, **command}, outputs=texts[-1]))
                deadline = time.monotonic() + self.timeout
                codes = [None]
                while None in codes:
                    codes = [process.poll() for process in started]
                    for code, (_, err) in zip(codes, texts):
                        if code:
                            raise Failed(reason(code, contents(err)))
                    if time.monotonic() > deadline:
                        raise Failed(f"no answer in {self.timeout} s")
                    time.sleep(0.02)
            finally:
                for process in started:
                    end(process)
            return [contents(out) for out, _ in texts], usage

    def _duration(self, launcher, case, program):
        """Of a job from its start to its end."""
        cores = self.cores(None)
        usage = Usage(cores)
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            self._finish(self._start([*launcher, f"--nproc_per_node={case.workers}", program], cores, folder=folder))
            seconds = time.perf_counter() - begin
        return {"seconds": seconds, "others": usage.of_others()}

    def cores(self, count):
        cores = sorted(os.sched_getaffinity(0))
        if count and len(cores) < count:
            raise Failed(f"it needs {count} cores, but this process may use {len(cores)}")
        return cores[-count:] if count else cores

    def _start(self, command, cores, threads=None, folder=ROOT, cgroup=None, env=None,
               outputs=(subprocess.PIPE, subprocess.PIPE)):
        env = {**self.env, **{name: str(value) for name, value in (env or {}).items()}}
        if threads:
            env = {**env, **dict.fromkeys(["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"], str(threads))}

        def prepare():
            os.sched_setaffinity(0, cores)
            if cgroup:
                cgroup.write_text("0")  # the process that writes
        try:
            return subprocess.Popen([*map(str, command)], stdout=outputs[0], stderr=outputs[1], text=True,
                                    cwd=folder, start_new_session=True, env=env,
                                    preexec_fn=prepare)
        except FileNotFoundError:
            raise Failed(f"{command[0]} is not there: scripts/build release") from None
        except subprocess.SubprocessError as error:  # of prepare
            raise Failed(str(error)) from None

    def _finish(self, process):
        """What it wrote on stdout and on stderr."""
        try:
            out, err = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"no answer in {self.timeout} s") from None
        finally:
            end(process)
        if process.returncode:
            raise Failed(reason(process.returncode, err))
        return out, err


def own_environment(peer):
    return next((name for name in OWN_ENVIRONMENT if peer.startswith(name)), "")


def contents(file):
    file.seek(0)
    return file.read()


def settings(case):
    return ["--batch", case.batch, "--threads", case.threads, "--steps", case.steps, "--warmup", case.warmup] + \
        ["--test"] * case.test


def figures_of(out):
    """The line of figures; launchers write before and after it."""
    lines = [line for line in out.splitlines() if line.startswith("{")]
    try:
        line = json.loads(lines[-1])
        line = {"steps_per_s": 1 / line["best_s"], **line}
    except (IndexError, ValueError):
        raise Failed("it printed no figures") from None
    loss = line.get("loss")
    if loss is not None and not math.isfinite(loss):
        raise Failed(f"the loss became {loss}")
    return line


class Usage:
    """How much of some cores other programs take while one of ours runs there."""

    def __init__(self, cores, interrupts=True):
        self.cores, self.interrupts = cores, interrupts
        self.start = self._now()

    def of_others(self, least=0.0):
        """`least` is known to be ours; processes whose parent does not wait for them do not count otherwise."""
        wall, busy, own = (now - then for now, then in zip(self._now(), self.start))
        return max(0.0, (busy - max(own, least)) / (wall * len(self.cores)))

    def _now(self):
        names = {f"cpu{core}" for core in self.cores}
        lines = (line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines())
        fields = [1, 2, 3, *[6, 7] * self.interrupts, 8]  # user, nice, system, interrupts hard and soft, stolen
        ticks = sum(int(line[i]) for line in lines if line[0] in names for i in fields)
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
