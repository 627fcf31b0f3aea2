"""Which DistributedStrategy a model is best trained with: the table of docs/applications.md."""
import os
from typing import List, NamedTuple, Optional

from fleetx import _job

# Values, gradients, and the two moments of Adam: 4 bytes each.
STATE_BYTES = 16
# What a layer of a Transformer keeps of a token for backward, in floats of its width.
ACTIVATION_FLOATS = 34
TOKENS = 4096  # of a batch, for the estimate


class Choice(NamedTuple):
    field: str  # "": nothing to switch on, but to be said
    configs: Optional[dict]
    sentence: str


def memory_of_worker() -> int:
    """Bytes that this worker may use: what is available, or the container's limit, divided by the workers here."""
    limits = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    try:
        with open("/proc/meminfo") as lines:
            limits = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")] or limits
        with open("/sys/fs/cgroup/memory.max") as file:
            limits += [int(word) for word in file.read().split() if word.isdigit()]
    except OSError:
        pass
    return min(limits) // max(1, _job.local()[1])


def _gb(size):
    return f"{size / 1e9:.1f} GB"


def choices(family: str, parameters: int, width: int, checkpoints: List[str], workers: int, memory: int,
            shapes: Optional[List[str]] = None) -> List[Choice]:
    """What to switch on, each with a sentence that says why. `shapes`: of a batch of TOKENS tokens, for auto."""
    if family == "click":
        if workers == 1:
            return []
        return [Choice("a_sync", None, "a_sync: tables are on servers, and workers that do not wait for each other are faster")]
    chosen = []
    state = STATE_BYTES * parameters
    if family == "mlperf":
        chosen.append(Choice("lars", {"lars_coeff": 0.001, "lars_weight_decay": 0.0005},
                             "lars: rates by layer keep the large batches of many workers stable"))
    kept = TOKENS * ACTIVATION_FLOATS * 4 * width * len(checkpoints) if family == "text" else 0
    if family in ("text", "image") and workers > 1 and state + kept > memory:
        return [Choice("auto", {"memory_limit_MB": max(1, memory >> 20), "shapes": list(shapes or [])},
                       f"auto: values, gradients and moments take {_gb(state)}, what backward waits for about {_gb(kept)}, and a "
                       f"worker has {_gb(memory)}: sharding, recompute and sizes of buckets are chosen by predicted time")]
    if state > memory:
        chosen.append(Choice("", None, f"values, gradients and moments take {_gb(state)}, more than a worker's {_gb(memory)}: "
                                       "one worker cannot make that smaller; take more workers, who share it"))
    if family == "text" and checkpoints:
        if state + kept > memory:
            chosen.append(Choice("recompute", {"checkpoints": list(checkpoints)},
                                 f"recompute: {TOKENS} tokens would keep about {_gb(kept)} for backward; outputs of layers are "
                                 "kept, the rest is computed again, for a third more time"))
    return chosen


class Recommended:
    """For models with `main_prog` and `checkpoints`."""

    _family = "image"

    def _layer_width(self) -> int:
        return 0

    def strategy_choices(self, workers: Optional[int] = None, memory: Optional[int] = None) -> List[Choice]:
        """What strategy() switches on, each with its reason. `workers`: of the job; `memory`: bytes of a worker."""
        parameters = sum(_count(p.shape) for p in self.main_prog.all_parameters())
        return choices(self._family, parameters, self._layer_width(), getattr(self, "checkpoints", []),
                       _job.worker()[1] if workers is None else workers, memory_of_worker() if memory is None else memory,
                       self._batch_shapes())

    def _batch_shapes(self) -> List[str]:
        """auto_configs["shapes"] of a batch with TOKENS tokens, or 32 pictures."""
        length = getattr(self, "max_seq_len", 128)
        batch = max(1, TOKENS // length) if self._family == "text" else 32
        return [f"{v.name}=" + ",".join(str(self._size_of(v.name, i, batch, length) if d in (None, -1) else d)
                                        for i, d in enumerate(v.shape)) for v in self.inputs]

    def _size_of(self, name: str, axis: int, batch: int, length: int) -> int:
        """What stands for an unknown dimension of a data variable."""
        return length if axis else batch

    def strategy(self, workers: Optional[int] = None, memory: Optional[int] = None):
        """The DistributedStrategy that suits this model, this job and this machine; strategy_choices() tells why."""
        from paddle.distributed import fleet
        strategy = fleet.DistributedStrategy()
        for choice in self.strategy_choices(workers, memory):
            if choice.field:
                setattr(strategy, choice.field, True)
            if choice.configs is not None:
                setattr(strategy, f"{choice.field}_configs", choice.configs)
        return strategy

    def _default_optimizer(self):
        import paddle
        if self._family in ("text", "click"):
            return paddle.optimizer.Adam(learning_rate=1e-3 if self._family == "click" else 1e-4), "Adam"
        return paddle.optimizer.Momentum(learning_rate=0.01, momentum=0.9), "Momentum, rate 0.01"

    def minimize_by_default(self) -> List[str]:
        """Adds optimizer and strategy() to a program that has none; lines that say what was chosen."""
        from paddle.distributed import fleet
        from paddle.distributed.fleet import api
        if api._roles is None:
            fleet.init(is_collective=True)
        optimizer, name = self._default_optimizer()
        fleet.distributed_optimizer(optimizer, self.strategy()).minimize(self.loss, self.startup_prog)
        chosen = self.strategy_choices()
        return [f"no optimizer was given: {name}, with the strategy that suits {type(self).__name__}"] + \
            [choice.sentence for choice in chosen or [Choice("", None, "data parallel alone: nothing else is needed here")]]


def has_update(program) -> bool:
    return any(op["role"] == "update" for op in program.ir.ops())


def _count(shape):
    count = 1
    for d in shape:
        count *= int(d)
    return count
