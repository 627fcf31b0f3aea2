"""Where the time of a stretch of training goes: a table by ops, and a trace for ui.perfetto.dev. (FLEETX_PROFILE=1 and
FLEETX_TRACE=file do the same for a whole run.)"""
import contextlib
import os
import sys

from paddle._native import native

__all__ = ["profiler", "start_profiler", "stop_profiler", "reset_profiler", "cuda_profiler", "Profiler", "ProfilerOptions",
           "get_profiler"]

_STATES = ("CPU", "GPU", "All")
_COLUMNS = {"calls": 0, "total": 1}
_DERIVED = ("default", "max", "min", "ave")


def start_profiler(state="All", tracer_option="Default"):
    """From now on ops are timed. `state` and `tracer_option` are those of the original; here all ops run on the CPU and
    each is timed by itself."""
    if state not in _STATES:
        raise ValueError(f"start_profiler: state must be one of {_STATES}, got {state!r}")
    if tracer_option not in ("Default", "OpDetail", "AllOpDetail"):
        raise ValueError(f"start_profiler: tracer_option must be Default, OpDetail or AllOpDetail, got {tracer_option!r}")
    native.start_profile()


def stop_profiler(sorted_key=None, profile_path="/tmp/profile"):
    """Prints the table on stdout and writes the trace to profile_path; "" or None writes none. Rows come by total time,
    or as sorted_key says: calls, total, ave, max, min (the last two order by the mean)."""
    if sorted_key is not None and sorted_key not in (*_COLUMNS, *_DERIVED):
        raise ValueError(f"stop_profiler: sorted_key must be one of {(*_COLUMNS, *_DERIVED)}, got {sorted_key!r}")
    if not native.profile_is_active():
        return
    if profile_path and os.path.dirname(profile_path):
        os.makedirs(os.path.dirname(profile_path), exist_ok=True)
    rows, table = native.stop_profile(profile_path or "")
    print(table if sorted_key in (None, "total", "default") else _sorted(rows, table, sorted_key), end="", flush=True)


def _sorted(rows, table, key):
    """The lines of the table in another order; those of calls to other ranks stay at its end."""
    head, *lines = table.splitlines(keepends=True)
    weight = {name: row[0] if key == "calls" else row[1] / max(row[0], 1) for name, row in rows.items()}
    longest = sorted(weight, key=len, reverse=True)

    def name_of(line):
        return next((n for n in longest if line.startswith(n + " ")), None)

    ops = [line for line in lines if name_of(line) is not None]
    rest = [line for line in lines if name_of(line) is None]
    return head + "".join(sorted(ops, key=lambda line: -weight[name_of(line)]) + rest)


def reset_profiler():
    """Forgets what was timed so far."""
    native.reset_profile()


@contextlib.contextmanager
def profiler(state="All", sorted_key=None, profile_path="/tmp/profile", tracer_option="Default"):
    """Inside, ops are timed."""
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextlib.contextmanager
def cuda_profiler(output_file, output_mode=None, config=None):
    """Writes the trace to output_file; there is no CUDA, and output_mode and config are those of its own profiler."""
    start_profiler()
    try:
        yield
    finally:
        stop_profiler(None, output_file)


class ProfilerOptions:
    """batch_range: the first and the last batch to be timed, by the calls of Profiler.record_step."""

    def __init__(self, options=None):
        self.options = {"state": "All", "sorted_key": "default", "tracer_level": "Default", "batch_range": [0, sys.maxsize],
                        "output_thread_detail": False, "profile_path": "none", "timeline_path": "none",
                        "op_summary_path": "none"}
        unknown = [name for name in options or {} if name not in self.options]
        if unknown:
            raise ValueError(f"ProfilerOptions has no option '{unknown[0]}'; it has: {', '.join(self.options)}")
        self.options.update(options or {})

    def __getitem__(self, name):
        value = self.options[name]
        return None if value == "none" else value


class Profiler:
    """Times the batches of ProfilerOptions' batch_range; a context."""

    def __init__(self, enabled=True, options=None):
        self.enabled = enabled
        self.profiler_options = options if isinstance(options, ProfilerOptions) else ProfilerOptions(options)
        self.batch_id = 0
        self._running = False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()
        return False

    def start(self):
        first, last = self.profiler_options["batch_range"]
        if self.enabled and not self._running and first <= self.batch_id < last:
            start_profiler(self.profiler_options["state"], self.profiler_options["tracer_level"])
            self._running = True

    def stop(self):
        if self._running:
            stop_profiler(self.profiler_options["sorted_key"], self.profiler_options["profile_path"])
            self._running = False

    def reset(self):
        if self._running:
            reset_profiler()

    def record_step(self, change_profiler_status=True):
        """A batch is done. With change_profiler_status the range of batches begins and ends timing."""
        self.batch_id += 1
        if change_profiler_status:
            if self._running and self.batch_id >= self.profiler_options["batch_range"][1]:
                self.stop()
            self.start()


_profiler = None


def get_profiler():
    """The one Profiler of the process."""
    global _profiler
    if _profiler is None:
        _profiler = Profiler()
    return _profiler
