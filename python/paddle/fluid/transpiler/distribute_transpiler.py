"""The settings of training with parameter servers in 1.x."""


class RoundRobin:
    """For split_method: blocks of parameters go to the servers in turn."""


class HashName:
    """For split_method: blocks of parameters go to the servers by a hash of their names."""


class DistributedMode:
    SYNC, ASYNC, HALF_ASYNC, GEO = range(4)


class DistributeTranspilerConfig:
    slice_var_up = True
    split_method = None
    min_block_size = 8192
    enable_dc_asgd = False
    mode = "pserver"
    print_log = False
    wait_port = True
    half_async = False
    completely_not_async = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100
    nccl_comm_num = 1
    use_hierarchical_allreduce = False
    hierarchical_allreduce_inter_nranks = 0
    collective_mode = None
    sync_mode = True
    runtime_split_send_recv = False

    def __setattr__(self, name, value):
        if not hasattr(type(self), name):
            raise AttributeError(f"DistributeTranspilerConfig has no setting '{name}'")
        if name in ("sync_mode", "runtime_split_send_recv"):
            if value is None:
                raise ValueError(f"DistributeTranspilerConfig.{name} must be True or False")
            other = "runtime_split_send_recv" if name == "sync_mode" else "sync_mode"
            if value and getattr(self, other):
                raise ValueError("sync_mode and runtime_split_send_recv cannot both be True")
        if name == "min_block_size" and value < 8192:
            raise ValueError(f"DistributeTranspilerConfig.min_block_size must be at least 8192, got {value}")
        super().__setattr__(name, value)

    def for_servers(self):
        """What minimize() takes (ServerConfig in C++)."""
        if self.mode != "pserver":
            raise ValueError(f"DistributeTranspilerConfig.mode is {self.mode!r}; with servers it is 'pserver'; for workers "
                             "alone use fleet.init(is_collective=True)")
        mode = "sync"
        if not self.sync_mode:
            mode = "geo" if self.geo_sgd_mode else "half_async" if self.half_async else "async"
        if self.enable_dc_asgd and mode not in ("async", "half_async"):
            raise ValueError(f"DistributeTranspilerConfig.enable_dc_asgd compensates the delays of async workers, and the mode is "
                             f"{mode}: set sync_mode = False, and geo_sgd_mode = False")
        method = self.split_method or "RoundRobin"
        return {"mode": mode, "k_steps": int(self.geo_sgd_need_push_nums) if mode == "geo" else 0,
                "dc_asgd": bool(self.enable_dc_asgd), "slice_var_up": bool(self.slice_var_up),
                "min_block_size": int(self.min_block_size),
                "split_method": method if isinstance(method, str) else method.__name__}


def __getattr__(name):
    if name == "DistributeTranspiler":
        from paddle.fluid.transpiler.transpiler import DistributeTranspiler
        return DistributeTranspiler
    raise AttributeError(f"module {__name__!r} has no {name!r}")
