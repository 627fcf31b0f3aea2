"""Who this process is in its job."""
from paddle import _refuse
from paddle._native import native


class Role:
    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4


class RoleMakerBase:
    """Holds what the C++ side found out; made when first asked."""

    def __init__(self, make):
        self._make = make
        self._native = None

    @property
    def native(self):
        if self._native is None:
            self._native = self._make()
        return self._native

    def generate_role(self):
        self.native

    def _is_worker(self):
        return self.native.is_worker()

    def _is_server(self):
        return self.native.is_server()

    def _is_first_worker(self):
        return self.native.is_first_worker()

    def _worker_index(self):
        return self.native.worker_index()

    def _server_index(self):
        return self.native.server_index()

    def _worker_num(self):
        return self.native.worker_num()

    def _server_num(self):
        return self.native.server_num()

    def _node_num(self):
        return self.native.node_num()

    def _role_id(self):
        return self.native.worker_index()

    def _get_trainer_endpoints(self):
        return self.native.worker_endpoints()

    def _get_pserver_endpoints(self):
        return self.native.server_endpoints()

    is_worker, is_server, is_first_worker = _is_worker, _is_server, _is_first_worker
    worker_index, server_index, worker_num, server_num = _worker_index, _server_index, _worker_num, _server_num
    get_trainer_endpoints, get_pserver_endpoints = _get_trainer_endpoints, _get_pserver_endpoints

    def __repr__(self):
        n = self.native
        return (f"role: {Role.WORKER if n.is_worker() else Role.SERVER}, current_id: {n.worker_index()}, "
                f"worker_endpoints: {n.worker_endpoints()}, server_endpoints: {n.server_endpoints()}")


class PaddleCloudRoleMaker(RoleMakerBase):
    """What fleetrun, PaddleCloud, mpirun or srun say in the environment. Workers meet as docs/fleetrun.md says, whatever
    init_gloo and path say."""

    def __init__(self, is_collective=False, init_gloo=False, path=None):
        self.is_collective = bool(is_collective)
        super().__init__(lambda: native.RoleMaker.from_environment(self.is_collective))


class UserDefinedRoleMaker(RoleMakerBase):
    """Everything is said by the script. Workers meet at the first of worker_endpoints, whatever init_gloo and path
    say."""

    def __init__(self, current_id=0, role=Role.WORKER, worker_num=0, server_endpoints=None, is_collective=False,
                 init_gloo=False, worker_endpoints=None, path=None):
        self.is_collective = bool(is_collective)
        workers = list(worker_endpoints or [])

        def make():
            if self.is_collective:
                return native.RoleMaker.user_defined_collective(current_id, workers)
            return native.RoleMaker.user_defined(current_id, int(role), int(worker_num), list(server_endpoints or []),
                                                 workers)
        super().__init__(make)


class UserDefinedCollectiveRoleMaker(UserDefinedRoleMaker):
    def __init__(self, current_id=0, worker_endpoints=None):
        super().__init__(current_id, worker_endpoints=worker_endpoints, is_collective=True)


class MPISymetricRoleMaker(RoleMakerBase):
    """mpirun with two processes per machine, a server and a worker."""

    def __init__(self):
        self.is_collective = False
        super().__init__(native.RoleMaker.mpi_symmetric)


__getattr__ = _refuse.getter(__name__, {"GeneralRoleMaker": "PaddleCloudRoleMaker", "HeterRoleMaker": "PaddleCloudRoleMaker"})
