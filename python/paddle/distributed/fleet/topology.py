"""Where a worker stands in the mesh that hybrid_configs makes of a job."""
from paddle._native import native
from paddle._refuse import refused

_GROUPS = "the strategies know their groups: hybrid_configs"


class HybridCommunicateGroup:
    """Ranks and sizes along the four axes: copies (data), stages (pipe), workers that divide state (sharding) and those that
    divide a layer (model). Workers that divide a layer are neighbours, then those that divide state, then copies
    (docs/strategy.md); numbers of data are for the samples to read: all workers of one number are fed the same."""

    def __init__(self, rank, workers, degrees):
        model, pipe, sharding = (int(degrees[key]) for key in ("mp_degree", "pp_degree", "sharding_degree"))
        data = workers // (model * pipe * sharding) if degrees["dp_degree"] == -1 else int(degrees["dp_degree"])
        if data * pipe * sharding * model != workers:
            raise native.InvalidArgumentError(
                f"hybrid_configs: dp {data} x pp {pipe} x sharding {sharding} x mp {model} are not the {workers} workers of the job")
        self.global_rank = rank
        self._sizes = {"data": data, "pipe": pipe, "sharding": sharding, "model": model}
        self._ranks = {}
        for axis in ("model", "sharding", "data", "pipe"):
            rank, self._ranks[axis] = divmod(rank, self._sizes[axis])

    def get_global_rank(self):
        return self.global_rank

    def get_stage_id(self):
        return self._ranks["pipe"]

    is_first_stage = property(lambda self: self.get_stage_id() == 0)
    is_last_stage = property(lambda self: self.get_stage_id() == self._sizes["pipe"] - 1)


def _rank_of(axis):
    return lambda self: self._ranks[axis]


def _size_of(axis):
    return lambda self: self._sizes[axis]


for _axis, _name in (("data", "data_parallel"), ("model", "model_parallel"), ("sharding", "sharding_parallel"),
                     ("pipe", "pipe_parallel")):
    setattr(HybridCommunicateGroup, f"get_{_name}_rank", _rank_of(_axis))
    setattr(HybridCommunicateGroup, f"get_{_name}_world_size", _size_of(_axis))
    for _what in ("group", "group_src_rank"):
        setattr(HybridCommunicateGroup, f"get_{_name}_{_what}",
                refused(f"HybridCommunicateGroup.get_{_name}_{_what}", None, _GROUPS))
