"""The profiler of 2.3: steps are skipped, warmed up or recorded by a schedule; a recorded stretch ends as a trace for
ui.perfetto.dev and a table."""
import enum
import os
import time

from paddle import _refuse
from paddle._native import native

__all__ = ["ProfilerState", "ProfilerTarget", "SortedKeys", "make_scheduler", "export_chrome_tracing", "Profiler",
           "RecordEvent"]


class ProfilerState(enum.Enum):
    CLOSED, READY, RECORD, RECORD_AND_RETURN = range(4)


class ProfilerTarget(enum.Enum):
    """All are this process: there is no accelerator."""
    CPU, GPU, MLU, XPU, CUSTOM_DEVICE = range(5)


class SortedKeys(enum.Enum):
    CPUTotal, CPUAvg, CPUMax, CPUMin, GPUTotal, GPUAvg, GPUMax, GPUMin = range(8)


def make_scheduler(*, closed, ready, record, repeat=0, skip_first=0):
    """Of each closed + ready + record steps the last `record` are recorded; `repeat` times, 0: to the end."""
    for name, value in (("closed", closed), ("ready", ready), ("record", record), ("repeat", repeat),
                        ("skip_first", skip_first)):
        if not isinstance(value, int) or value < (name == "record"):
            raise ValueError(f"make_scheduler: {name} must be a whole number of at least {int(name == 'record')}, got {value!r}")

    def state(step):
        step -= skip_first
        span = closed + ready + record
        if step < 0 or (repeat and step // span >= repeat):
            return ProfilerState.CLOSED
        place = step % span
        if place < closed:
            return ProfilerState.CLOSED
        if place < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD if place < span - 1 else ProfilerState.RECORD_AND_RETURN
    return state


def export_chrome_tracing(dir_name, worker_name=None):
    """For on_trace_ready: writes the trace of each recorded stretch into a folder."""
    def handle(profiler):
        os.makedirs(dir_name, exist_ok=True)
        who = worker_name or f"worker_{native.job_env()['rank']}"
        profiler.export(os.path.join(dir_name, f"{who}_step_{profiler.step_num}.json"))
    return handle


class RecordEvent:
    """A stretch of the user's code under a name; summary() shows its time. A context, or begin() and end()."""

    _seconds = {}  # name -> (times, seconds)

    def __init__(self, name, event_type=None):
        self.name, self.event_type = name, event_type
        self._start = None

    def begin(self):
        self._start = time.perf_counter()

    def end(self):
        if self._start is not None:
            times, seconds = RecordEvent._seconds.get(self.name, (0, 0.0))
            RecordEvent._seconds[self.name] = times + 1, seconds + time.perf_counter() - self._start
            self._start = None

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *error):
        self.end()
        return False


class Profiler:
    """`scheduler`: a function of the step's number, or (first, last) of the steps to record; None: all of them.
    timer_only measures steps and times no op."""

    def __init__(self, *, targets=None, scheduler=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                 timer_only=False, emit_nvtx=False, custom_device_types=None, with_flops=False):
        if custom_device_types:
            raise native.UnsupportedError("Profiler: custom_device_types: there are no other devices")
        if isinstance(scheduler, (list, tuple)):
            first, last = scheduler
            scheduler = make_scheduler(closed=max(first - 1, 0), ready=int(first > 0), record=last - first, repeat=1)
        self._scheduler = scheduler or (lambda step: ProfilerState.RECORD)
        self._on_trace_ready, self._timer_only = on_trace_ready, timer_only
        self.step_num = 0
        self.current_state = ProfilerState.CLOSED
        self._table = ""
        self._trace = None
        self._steps, self._samples, self._since = 0, 0, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()
        return False

    def start(self):
        RecordEvent._seconds.clear()
        self._since = time.perf_counter()
        self._go_to(self._scheduler(self.step_num))

    def stop(self):
        self._close()
        self.current_state = ProfilerState.CLOSED

    def step(self, num_samples=None):
        """A step is done."""
        self._steps, self._samples = self._steps + 1, self._samples + (num_samples or 0)
        if self.current_state is ProfilerState.RECORD_AND_RETURN:
            self._close()
        self.step_num += 1
        self._go_to(self._scheduler(self.step_num))

    def step_info(self, unit=None):
        """Mean time of the steps since the last call, and samples per second where step() was told of them."""
        now = time.perf_counter()
        seconds, steps, samples = now - self._since, max(self._steps, 1), self._samples
        self._since, self._steps, self._samples = now, 0, 0
        rate = samples / seconds if samples else steps / seconds
        return f"batch_cost: {seconds / steps:.5f} s ips: {rate:.3f} {unit or ('samples/s' if samples else 'steps/s')}"

    def _go_to(self, state):
        recording = (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)
        if state in recording and not native.profile_is_active() and not self._timer_only:
            native.start_profile()
        elif state not in recording:
            self._close()
        self.current_state = state

    def _close(self):
        if not native.profile_is_active() or self._timer_only:
            return
        import tempfile
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            _, self._table = native.stop_profile(file.name)
            self._trace = file.read()
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def export(self, path="", format="json"):
        """Writes the trace of the last recorded stretch."""
        if format != "json":
            raise native.UnsupportedError(f"Profiler.export: format={format!r}; traces are written as json")
        if self._trace is None:
            raise native.InvalidArgumentError("Profiler.export: nothing was recorded yet")
        with open(path, "wb") as file:
            file.write(self._trace)

    def summary(self, sorted_by=None, op_detail=True, thread_sep=False, time_unit="ms", views=None):
        """Prints the table of the last recorded stretch, by total time, in ms."""
        print(self._table, end="")
        for name, (times, seconds) in sorted(RecordEvent._seconds.items(), key=lambda item: -item[1][1]):
            print(f"{'event ' + name:<40}{times:>8}{seconds * 1e3:>12.3f}")


__getattr__ = _refuse.getter(__name__, {"load_profiler_result": "ui.perfetto.dev", "export_protobuf": "export_chrome_tracing",
                                        "SummaryView": "Profiler.summary()", "get_profiler": "paddle.utils.profiler.get_profiler"})
