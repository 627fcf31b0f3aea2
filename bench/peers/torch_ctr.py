"""The job of ctr.py on torch.distributed.rpc, which has no parameter server of its own: the first process keeps the table
and the dense parameters, the others train. A round trip pulls rows, another pushes gradients and brings the dense
parameters back; async, the rows of the next batch travel while this one computes. Argument: workers."""
import os
import sys
import threading

import ctr


def start(workers):
    port, = ctr.free_ports(1)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ctr.launch(["worker"] * (workers + 1), [dict(shared, RANK=str(rank)) for rank in range(workers + 1)])


if "RANK" not in os.environ:
    start(int(sys.argv[1]))

import torch  # noqa: E402
import torch.distributed.rpc as rpc  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [ctr.SLOTS * ctr.DIM + ctr.NUMBERS, *ctr.HIDDEN]
        layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
        self.deep, self.wide = nn.Sequential(*layers, nn.Linear(sizes[-1], 1)), nn.Linear(ctr.NUMBERS, 1)

    def forward(self, numbers, rows):
        return self.wide(numbers) + self.deep(torch.cat([rows.flatten(1), numbers], 1))


class Server:
    def __init__(self):
        self.table = torch.empty(ctr.IDS, ctr.DIM).uniform_(-0.1, 0.1)
        self.dense = nn.utils.parameters_to_vector(Dense().parameters()).detach()
        self.lock = threading.Lock()
        self.waiting, self.answer = [], torch.futures.Future()

    def apply(self, ids, of_rows, of_dense, rate):
        self.table.index_add_(0, ids, of_rows, alpha=-rate)
        self.dense.add_(of_dense, alpha=-rate)


SERVER = Server() if os.environ["RANK"] == "0" else None


def pull_dense():
    return SERVER.dense


def pull(ids):
    return SERVER.table.index_select(0, ids)


def push(*gradients):
    with SERVER.lock:
        SERVER.apply(*gradients, ctr.RATE)
        return SERVER.dense.clone()


@rpc.functions.async_execution
def push_together(workers, *gradients):
    """Answers when all workers have pushed."""
    with SERVER.lock:
        SERVER.waiting.append(gradients)
        answer = SERVER.answer
        if len(SERVER.waiting) == workers:
            for each in SERVER.waiting:
                SERVER.apply(*each, ctr.RATE / workers)
            SERVER.waiting, SERVER.answer = [], torch.futures.Future()
            answer.set_result(SERVER.dense.clone())
    return answer


def batches(files):
    for path in files:
        with open(path) as file:
            while lines := file.readlines(ctr.BATCH * 300):
                columns = [torch.from_numpy(column) for column in ctr.parse("".join(lines))]
                yield from zip(*(column.split(ctr.BATCH) for column in columns))


def with_rows(batch):
    """The batch, its ids without repetition, their places, and the rows that are on their way."""
    if batch is None:
        return None
    ids, places = torch.unique(batch[1], return_inverse=True)
    return batch, ids, places, rpc.rpc_async("rank0", pull, args=(ids,))


def train(net, files, workers):
    ahead = ctr.mode() == "async"
    source = batches(files)
    following = with_rows(next(source, None))
    while following:
        (numbers, _, labels), ids, places, rows = following
        rows = rows.wait().requires_grad_()
        if ahead:
            following = with_rows(next(source, None))
        net.zero_grad()
        F.binary_cross_entropy_with_logits(net(numbers, F.embedding(places, rows)), labels).backward()
        gradients = (ids, rows.grad, torch.cat([p.grad.flatten() for p in net.parameters()]))
        call, arguments = (push, gradients) if ahead else (push_together, (workers, *gradients))
        nn.utils.vector_to_parameters(rpc.rpc_sync("rank0", call, args=arguments), net.parameters())
        if not ahead:
            following = with_rows(next(source, None))


def main():
    rank, workers = int(os.environ["RANK"]), int(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=4, rpc_timeout=60)
    rpc.init_rpc(f"rank{rank}", rank=rank, world_size=workers + 1, rpc_backend_options=options)
    if rank > 0:
        net = Dense()
        nn.utils.vector_to_parameters(rpc.rpc_sync("rank0", pull_dense), net.parameters())
        ctr.measure(rank - 1, workers, lambda files: train(net, files, workers), torch.__version__)
    rpc.shutdown()


if __name__ == "__main__":
    main()
