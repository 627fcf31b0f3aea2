"""Measures PyTorch's DistributedDataParallel with Gloo on one workload in one mode, or what divides state between workers:
ZeroRedundancyOptimizer (--zero) and FSDP2 (--fsdp).

Each worker is a process with its own cores. A step ends when all workers have made it, so that the best one is that of
all of them. With RANK in the environment, as torchrun sets it, this process is that one worker and uses the cores it has.
"""
import os
import pathlib
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from measure import arguments, report
from torch_models import WORKLOADS
from torch_peer import FLAGS, MODES, prepare, training


def work_on_cores(rank, options, meeting, cores):
    os.sched_setaffinity(0, cores[rank * options.threads:(rank + 1) * options.threads])
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=options.workers)
    work(rank, options)


def work(rank, options):
    net, inputs, loss_of, optimizer, items = prepare(options, seed=1 + rank)
    net, optimizer = divided(net, optimizer, options)
    train = training(net, inputs, loss_of, optimizer, options)

    def step():
        loss = train()
        dist.barrier()
        return loss

    dist.barrier()
    if rank == 0:
        report(step, options, items * options.workers, torch.__version__)
    else:
        for _ in range(options.warmup + options.steps):
            step()
    dist.destroy_process_group()


def divided(net, optimizer, options):
    """The network as the workers share it, and the optimizer of this worker's part."""
    if options.fsdp:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for part in [*net.layers, net]:  # every layer is gathered by itself
            fully_shard(part, mesh=mesh)
        return net, type(optimizer)(net.parameters(), **optimizer.defaults)
    if options.zero:
        optimizer = ZeroRedundancyOptimizer(net.parameters(), type(optimizer), **optimizer.defaults)
    return DistributedDataParallel(net), optimizer


def main():
    options = arguments([*WORKLOADS], MODES, [*FLAGS, "zero", "fsdp"])
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        work(dist.get_rank(), options)
        return
    cores = sorted(os.sched_getaffinity(0))
    if options.test or len(cores) < options.workers * options.threads:
        raise SystemExit("torch_ddp_peer: it trains only, and needs a core for every thread")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work_on_cores, (options, pathlib.Path(folder) / "meeting", cores), options.workers)


if __name__ == "__main__":
    main()
