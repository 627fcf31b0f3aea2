"""What a script asks of the distributed run."""
import warnings

from paddle._native import native

_FIELDS = set(native.DistributedStrategy.field_names())
_CONFIGS = set(native.DistributedStrategy.configs_names())
_GROUPS = ("build_strategy", "execution_strategy")
_ALIASES = {"_fuse_grad_size_in_TFLOPS": "fuse_grad_size_in_TFLOPS", "_calc_comm_same_stream": "calc_comm_same_stream"}

# Of the original's servers: what these say by default is accepted. adam_d2sum is noted and changes nothing: the servers
# update parameters by the optimizer's own rule.
_OF_SERVERS = {"fs_client_param": {}, "sparse_table_configs": {}, "adam_d2sum": False}
_INSTEAD = {"fs_client_param": "fleet.utils.HDFSClient, and local files", "sparse_table_configs":
            "entry and padding_idx of sparse_embedding, its initializer, and the optimizer, which make the tables"}


def _check_kind(what, value, known):
    """Numbers, texts and lists of either are left to the native class, which says what is wrong with them."""
    values = value if isinstance(value, (list, tuple)) else [value]
    kinds = {str if isinstance(v, str) else float if hasattr(v, "__index__") or hasattr(v, "__float__") else None for v in values}
    if None in kinds or len(kinds) > 1:
        raise ValueError(f"DistributedStrategy.{what} is {value!r}; give it a value like the one it has, {known!r}, or leave it out")


class DistributedStrategy:
    """Switches and settings, by the names of the original. An unknown name is a TypeError, a value of the wrong type a
    ValueError: nothing is ignored."""

    def __init__(self):
        object.__setattr__(self, "native", native.DistributedStrategy())
        object.__setattr__(self, "_of_servers", dict(_OF_SERVERS))

    def __setattr__(self, name, value):
        name = _ALIASES.get(name, name)
        if name in _GROUPS:
            values = {n: getattr(value, n) for n in self.native.get_configs(name) if hasattr(value, n)}
            self.native.set_configs(name, values)
            if getattr(value, "sync_batch_norm", False):  # the strategy of that name
                self.native.set("sync_batch_norm", True)
        elif name in _OF_SERVERS:
            self._note(name, value)
        elif name in _CONFIGS:
            self._set_configs(name, value)
        elif name in _FIELDS:
            _check_kind(name, value, self.native.get(name))
            self.native.set(name, value)
        else:
            raise TypeError(f"DistributedStrategy has no '{name}'; print(strategy) shows what it has")

    def _note(self, name, value):
        wanted = type(_OF_SERVERS[name])
        if not isinstance(value, wanted):
            raise ValueError(f"DistributedStrategy.{name} takes a {wanted.__name__}, got {type(value).__name__}")
        if wanted is dict and any(v for k, v in value.items() if k != "hadoop_bin"):
            raise native.UnsupportedError(f"DistributedStrategy.{name} = {value} is not here; use {_INSTEAD[name]}")
        self._of_servers[name] = value

    def _set_configs(self, name, value):
        if not isinstance(value, dict):
            raise ValueError(f"DistributedStrategy.{name} takes a dict, got {type(value).__name__}")
        known = self.native.get_configs(name)
        unknown = [k for k in value if k not in known]
        if unknown:
            raise AssertionError(f"DistributedStrategy.{name} has no {', '.join(unknown)}; it has: {', '.join(known)}")
        # Lists may be sets, hold variables, or be None, which is an empty one.
        plain = {k: self._plain_list(values) if isinstance(known[k], list) else values for k, values in value.items()}
        for key, given in plain.items():
            _check_kind(f"{name}['{key}']", given, known[key])
        self.native.set_configs(name, plain)

    @staticmethod
    def _plain_list(values):
        if values is None:
            return []
        if not isinstance(values, (list, tuple, set, frozenset)):
            return values
        names = [getattr(v, "name", v) for v in values]
        return sorted(names) if isinstance(values, (set, frozenset)) else names

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        name = _ALIASES.get(name, name)
        if name in _GROUPS:
            from paddle import static
            group = static.BuildStrategy() if name == "build_strategy" else static.ExecutionStrategy()
            for key, value in self.native.get_configs(name).items():
                if hasattr(type(group), key):
                    setattr(group, key, value)
            return group
        if name in _OF_SERVERS:
            return self._of_servers[name]
        if name in _CONFIGS:
            return self.native.get_configs(name)
        if name in _FIELDS:
            return self.native.get(name)
        raise AttributeError(f"DistributedStrategy has no '{name}'; print(strategy) shows what it has")

    def without_unused(self):
        """The strategy without settings of what is off, of which a warning tells: scripts set them whatever their flags say."""
        usual, unused = native.DistributedStrategy(), {}
        for name in sorted(_CONFIGS - {"a_sync_configs"}):  # which a job with servers reads in any case
            switch = name.removesuffix("_configs")
            if switch in _FIELDS and not self.native.get(switch):
                default = usual.get_configs(name)
                changed = [key for key, value in self.native.get_configs(name).items() if value != default[key]]
                if changed:
                    unused[name] = default
                    warnings.warn(f"DistributedStrategy.{name}: {', '.join(changed)} set, but {switch} is off: not used; "
                                  f"strategy.{switch} = True switches it on", stacklevel=4)
        if not unused:
            return self
        other = self.__deepcopy__({})
        for name, default in unused.items():
            other.native.set_configs(name, default)
        return other

    def in_hybrid_configs(self):
        """The strategy with the degrees of 2.1, those of tensor_parallel_configs and sharding_configs, where hybrid_configs has
        none."""
        told, sharding = {}, self.sharding_configs
        if self.tensor_parallel:
            told["mp_degree"] = self.tensor_parallel_configs["tensor_parallel_degree"]
        moved = {key: 1 for key in ("mp_degree", "pp_degree") if self.sharding and sharding[key] > 1}
        told.update({key: sharding[key] for key in moved})
        told = {key: degree for key, degree in told.items() if self.hybrid_configs[key] in (1, degree)}
        if not told:
            return self
        other = self.__deepcopy__({})
        other.hybrid_configs = told
        other.sharding_configs = {key: 1 for key in moved if key in told}
        return other

    def save_to_prototxt(self, output):
        self.native.save_text(output)

    def load_from_prototxt(self, pb_file):
        self.native.load_text(pb_file)

    def __repr__(self):
        return self.native.to_table()

    __str__ = __repr__

    def __eq__(self, other):
        return isinstance(other, DistributedStrategy) and self.native == other.native

    __hash__ = object.__hash__

    def __deepcopy__(self, memo):
        other = DistributedStrategy()
        object.__setattr__(other, "native", self.native.copy())
        other._of_servers.update(self._of_servers)
        return other
