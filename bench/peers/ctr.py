"""The job of the parameter servers' bench, and what its programs share: the data, the settings, the notes they leave.

A line of data is MultiSlot text: 13 numbers, 26 ids and a label, which a hidden model draws. Settings come from the
environment: CTR_DATA and CTR_NOTES (folders), CTR_MODE (async, sync, half_async, geo) and CTR_JOB, which marks all
processes of a job. Runs with Python 3.7 and later, as old peers need it.
"""
import glob
import json
import os
import resource
import socket
import subprocess
import sys
import time

SLOTS, NUMBERS, IDS, DIM, HIDDEN, BATCH, RATE, GEO_STEPS = 26, 13, 1000001, 10, [400, 400, 400], 512, 0.1, 100
FILES = 4


def mode():
    return os.environ.get("CTR_MODE", "async")


def write_files(folder, lines):
    """Makes the data, half of the slots with ids that are all as frequent, half with some that are much more so."""
    import numpy as np
    random = np.random.RandomState(0)
    weights = 2 * random.randn(NUMBERS)
    for number in range(FILES):
        count = lines // FILES
        numbers, u = random.rand(count, NUMBERS), random.rand(count, SLOTS)
        even = np.arange(SLOTS) % 2 == 0
        ids = np.where(even, 1 + (u * (IDS - 1)).astype("int64"), np.exp(u * np.log(IDS - 1)).astype("int64"))
        ids = np.clip(ids * (1 + np.arange(SLOTS)) * 7919 % IDS, 1, IDS - 1)  # slots do not share frequent ids
        hidden = ((ids * 2654435761 >> 7) % 1000) / 1000 - 0.5
        score = (numbers - 0.5) @ weights + 2 * hidden[:, ~even].sum(1) - 1.5
        labels = random.rand(count) < 1 / (1 + np.exp(-score))
        with open(os.path.join(folder, "part-%05d" % number), "w") as file:
            for x, slots, label in zip(numbers, ids, labels):
                file.write("13 %s %s 1 %d\n" % (" ".join("%.4f" % v for v in x), " ".join("1 %d" % i for i in slots), label))


def parse(text):
    """Numbers, ids and labels of many lines, for peers without a reader of their own."""
    import numpy as np
    table = np.fromstring(text, dtype="float64", sep=" ").reshape(-1, 2 + NUMBERS + 2 * SLOTS + 1)
    first = 1 + NUMBERS
    return (table[:, 1:first].astype("float32"), table[:, first + 1:first + 2 * SLOTS:2].astype("int64"),
            table[:, -1:].astype("float32"))


def files_of(worker, workers):
    return sorted(glob.glob(os.path.join(os.environ["CTR_DATA"], "part-*")))[worker::workers]


def measure(worker, workers, train, version, examples=None):
    """Trains one file to warm up, then all of this worker; notes what the second pass took. `train` takes files."""
    files = files_of(worker, workers)
    train(files[:1])
    meet("begin", worker, workers)
    cpu, begin = job_cpu(), time.monotonic()
    train(files)
    end = time.monotonic()
    line = {"begin_s": begin, "end_s": end, "examples": examples or sum(count_lines(file) for file in files),
            "cpu_begin_s": cpu, "cpu_end_s": job_cpu(), "version": version,
            "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    note("worker-%d.json" % worker, json.dumps(line))
    meet("end", worker, workers)


def count_lines(path):
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def note(name, text=""):
    """Appears at once or not at all."""
    path = os.path.join(os.environ["CTR_NOTES"], name)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def meet(what, worker, workers):
    """Waits until all workers are there."""
    note("%s-%d" % (what, worker))
    while len(glob.glob(os.path.join(os.environ["CTR_NOTES"], what + "-*[0-9]"))) < workers:
        time.sleep(0.01)


def job_cpu():
    """CPU seconds of all processes that have this CTR_JOB in their environment, and of those they waited for."""
    mark = ("CTR_JOB=" + os.environ["CTR_JOB"]).encode()
    ticks = 0
    for path in glob.glob("/proc/[0-9]*"):
        try:
            with open(path + "/environ", "rb") as environ, open(path + "/stat") as stat:
                if mark in environ.read().split(b"\0"):
                    ticks += sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:15]))
        except OSError:
            pass  # it has ended
    return ticks / os.sysconf("SC_CLK_TCK")


def launch(roles, environments):
    """Runs this program once per environment, for peers without a launcher. Servers are ended after the rest."""
    processes = [subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, **environment))
                 for environment in environments]
    codes = [process.wait() for role, process in zip(roles, processes) if role != "server"]
    for process in processes:
        process.kill()
        process.wait()
    sys.exit(max(map(abs, codes)))


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
