"""Modes of training with parameter servers, by name."""
from paddle._executor import BuildStrategy, ExecutionStrategy, _Settings
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig


class TrainerRuntimeConfig(_Settings):
    """How the original's workers buffer what they send. Accepted; here a worker sends a step's gradients at once."""

    mode = None
    max_merge_var_num = send_queue_size = min_send_grad_num_before_recv = 1
    independent_recv_thread = 1
    thread_pool_size = send_wait_times = 5
    runtime_configs = {}

    def get_communicator_flags(self):
        """The settings as the original's communicator takes them."""
        names = ("max_merge_var_num", "send_queue_size", "min_send_grad_num_before_recv", "independent_recv_thread",
                 "thread_pool_size", "send_wait_times")
        return {f"communicator_{name}": str(getattr(self, name)) for name in names}


class ServerRuntimeConfig(_Settings):
    """Threads of the original's servers. Accepted; here servers have as many as the process may use."""

    _rpc_send_thread_num = _rpc_get_thread_num = _rpc_prefetch_thread_num = 12


class DistributedStrategy:
    """A DistributeTranspilerConfig, and settings of the original that are accepted."""

    def __init__(self):
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config, self._server_runtime_config = TrainerRuntimeConfig(), ServerRuntimeConfig()
        self._execute_strategy, self._build_strategy = ExecutionStrategy(), BuildStrategy()

    def for_servers(self):
        return self._program_config.for_servers()

    def get_program_config(self):
        return self._program_config

    def set_program_config(self, config):
        if isinstance(config, DistributeTranspilerConfig):
            self._program_config = config
        elif isinstance(config, dict):
            for name, value in config.items():
                setattr(self._program_config, name, value)
        else:
            raise TypeError(f"set_program_config takes a DistributeTranspilerConfig or a dict, not {type(config).__name__}")

    def get_trainer_runtime_config(self):
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config):
        if isinstance(config, dict):  # by the names of get_communicator_flags()
            config = {name.removeprefix("communicator_"): value for name, value in config.items()}
        _take(self._trainer_runtime_config, config)

    def get_server_runtime_config(self):
        return self._server_runtime_config

    def set_server_runtime_config(self, config):
        _take(self._server_runtime_config, config)

    def get_execute_strategy(self):
        return self._execute_strategy

    def set_execute_strategy(self, config):
        _take(self._execute_strategy, config)

    def get_build_strategy(self):
        return self._build_strategy

    def set_build_strategy(self, config):
        _take(self._build_strategy, config)


def _take(settings, config):
    if isinstance(config, type(settings)):
        config = vars(config)
    if not isinstance(config, dict):
        raise TypeError(f"expected a {type(settings).__name__} or a dict, not {type(config).__name__}")
    for name, value in config.items():
        setattr(settings, name, value)


def _made(sync, **settings):
    strategy = DistributedStrategy()
    strategy._program_config.sync_mode = sync
    for name, value in settings.items():
        setattr(strategy._program_config, name, value)
    return strategy


class StrategyFactory:
    @staticmethod
    def create_sync_strategy():
        return _made(True)

    @staticmethod
    def create_async_strategy():
        return _made(False, runtime_split_send_recv=True)

    @staticmethod
    def create_half_async_strategy():
        return _made(False, half_async=True)

    @staticmethod
    def create_geo_strategy(update_frequency=100):
        return _made(False, runtime_split_send_recv=True, geo_sgd_mode=True, geo_sgd_need_push_nums=update_frequency)
