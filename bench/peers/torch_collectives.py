"""One rank of torch.distributed over Gloo, as bench/net_rank.h describes it: FOLDER COLLECTIVE:BYTES:CALLS...

Rank, number of ranks and where they meet come from the variables that torchrun sets."""
import json
import mmap
import os
import pathlib
import resource
import sys
import time

import torch
import torch.distributed as dist

WARMUPS = 2
SEAT = 8  # numbers of 8 bytes in a cache line


class Meeting:
    """Ranks count how often they came."""

    def __init__(self, path, rank, ranks):
        with open(path, "r+b") as file:
            self.seats = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
        self.rank, self.others = rank, [SEAT * r for r in range(ranks)]

    def wait(self):
        """Asleep, so that those who still compute have the cores, then awake, so that all begin at the same moment."""
        self.come(lambda: time.sleep(1e-4))
        self.come(os.sched_yield)

    def come(self, pause):
        mine = self.seats[SEAT * self.rank] + 1
        self.seats[SEAT * self.rank] = mine
        for seat in self.others:
            while self.seats[seat] < mine:
                pause()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def call_of(collective, x, y, ranks):
    part = len(x) // ranks
    whole_x, whole_y = x[:part * ranks], y[:part * ranks]
    return {"all_reduce": lambda: dist.all_reduce(x),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(y[:part], whole_x),
            "all_gather": lambda: dist.all_gather_into_tensor(whole_y, x[:part]),
            "broadcast": lambda: dist.broadcast(x, 0),
            "all_to_all": lambda: dist.all_to_all_single(whole_y, whole_x)}[collective]


def main():
    folder, tasks = pathlib.Path(sys.argv[1]), [task.split(":") for task in sys.argv[2:]]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    meeting = Meeting(folder / "meeting", rank, ranks)
    with open(folder / f"rank-{rank}", "w") as notes:
        for collective, size, calls in tasks:
            x, y = torch.zeros(int(size) // 4), torch.zeros(int(size) // 4)
            call = call_of(collective, x, y, ranks)
            result = x if collective in ("all_reduce", "broadcast") else y
            expected = ranks if collective in ("all_reduce", "reduce_scatter") else 1
            begins, ends, cpu = [], [], 0.0
            for i in range(-WARMUPS, int(calls)):
                x.fill_(0 if collective == "broadcast" and rank > 0 else 1)
                y.zero_()
                meeting.wait()
                cpu_before, begin = cpu_seconds(), time.monotonic_ns() / 1e3
                call()
                end = time.monotonic_ns() / 1e3
                if not (result[:len(result) // ranks:97] == expected).all():
                    raise SystemExit(f"torch_collectives: {collective}: wrong result")
                if i >= 0:
                    cpu += cpu_seconds() - cpu_before
                    begins.append(begin)
                    ends.append(end)
            notes.write(json.dumps({"collective": collective, "bytes": int(size), "begin_us": begins, "end_us": ends,
                                    "cpu_s": cpu, "process_cpu_s": cpu_seconds(),
                                    "version": torch.__version__}) + "\n")
    meeting.wait()  # nobody ends while others measure
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
