"""DistributeTranspiler: a program that one worker trains becomes that of a job, after minimize()."""
import atexit

from paddle import _graph
from paddle._executor import Executor
from paddle._native import native
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

_COLLECTIVE = ("nccl2", "collective")


class ServerProgram(_graph.Program):
    """What get_pserver_program returns: Executor.run of it serves until the workers have ended."""

    def serve(self):
        from paddle.distributed import fleet
        fleet.init_server()
        fleet.run_server()


class DistributeTranspiler:
    """transpile() tells it of the job. mode "nccl2": workers average their gradients; they are those of
    `trainers`, "ip:port,...", or of fleetrun. mode "pserver": get_pserver_program or get_trainer_program says which one
    this process is. minimize() is done anew for the job, so that transpile must follow it directly."""

    def __init__(self, config=None):
        self.config = config if config is not None else DistributeTranspilerConfig()
        self._told = None

    def transpile(self, trainer_id, program=None, pservers="127.0.0.1:6174", trainers=1, sync_mode=True,
                  startup_program=None, current_endpoint="127.0.0.1:6174"):
        program = program if program is not None else _graph.default_main_program()
        told = program.take_back_training()
        if startup_program is not None and startup_program is not told["startup_program"]:
            raise native.InvalidArgumentError("transpile: startup_program is not the one that minimize() has written into")
        self._told, self._program, self._trainer_id = told, program, int(trainer_id)
        if self.config.mode in _COLLECTIVE:
            self._collective(trainers, current_endpoint)
        else:
            self._servers, self._trainers = [e.strip() for e in pservers.split(",")], int(trainers)
            if not sync_mode:
                self.config.sync_mode = False
        return program

    def _minimize(self, strategy):
        from paddle.distributed import fleet
        told = self._told
        fleet.distributed_optimizer(told["optimizer"], strategy).minimize(
            told["loss"], told["startup_program"], told["parameters"], told["no_grad_set"])

    def _collective(self, trainers, current_endpoint):
        from paddle.distributed import fleet
        from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker, UserDefinedCollectiveRoleMaker
        endpoints = [e.strip() for e in trainers.split(",")] if isinstance(trainers, str) else []
        known = native.job_env()["world"] > 1  # by fleetrun
        if not known and len(endpoints) > 1 and endpoints[self._trainer_id] != current_endpoint:
            raise native.InvalidArgumentError(f"transpile: current_endpoint is {current_endpoint}, trainer {self._trainer_id} of "
                                              f"{','.join(endpoints)} is {endpoints[self._trainer_id]}")
        by_hand = not known and len(endpoints) > 1
        fleet.init(UserDefinedCollectiveRoleMaker(self._trainer_id, endpoints) if by_hand else PaddleCloudRoleMaker(True),
                   is_collective=True)
        self._minimize(None)

    def _join(self, role, current_id):
        from paddle.distributed import fleet
        from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker, UserDefinedRoleMaker
        if self._told is None:
            raise native.InvalidArgumentError("DistributeTranspiler: call transpile(...) first")
        if native.env("TRAINING_ROLE"):  # a launcher has said it, and where the workers meet
            roles = PaddleCloudRoleMaker()
        else:
            roles = UserDefinedRoleMaker(current_id, role, self._trainers, self._servers)
        fleet.init(roles)
        self._minimize(self.config)

    def get_trainer_program(self, wait_port=True):
        """This process is a worker. Its servers are waited for, whatever wait_port says."""
        from paddle.distributed import fleet
        from paddle.distributed.fleet.base.role_maker import Role
        if self.config.mode not in _COLLECTIVE:
            self._join(Role.WORKER, self._trainer_id)
            fleet.init_worker()
            Executor.at_close.append(fleet.stop_worker)  # as exe.close() of 1.x does; or when the script ends
            atexit.register(lambda: Executor.at_close and Executor.at_close.pop()())
        return self._program

    def get_pserver_program(self, endpoint):
        """This process is the server at `endpoint`."""
        from paddle.distributed.fleet.base.role_maker import Role
        if endpoint not in self._servers:
            raise native.InvalidArgumentError(f"get_pserver_program: {endpoint} is none of the servers {','.join(self._servers)}")
        self._join(Role.SERVER, self._servers.index(endpoint))
        return ServerProgram()

    def get_pserver_programs(self, endpoint):
        """(program of the server, its startup program)."""
        served = self.get_pserver_program(endpoint)
        return served, self.get_startup_program(endpoint, served)

    def get_startup_program(self, endpoint, pserver_program=None, startup_program=None):
        """A server makes its parameters when it begins: an empty program."""
        return _graph.Program()
