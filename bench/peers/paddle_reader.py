"""Lines per second of PaddlePaddle's reader of MultiSlot text: InMemoryDataset.load_into_memory with one thread, in CPU time
of the process. A line of JSON.   paddle_reader.py FILE"""
import json
import os
import resource
import sys

import paddle

ROUNDS = 3


def cpu_now():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main():
    path = os.path.abspath(sys.argv[1])
    with open(path, "rb") as file:
        lines = sum(1 for _ in file)
    paddle.enable_static()
    use_var = [paddle.static.data("dense", [None, 13], "float32"),
               *(paddle.static.data(f"C{i}", [None, 1], "int64") for i in range(1, 27)),
               paddle.static.data("label", [None, 1], "int64")]
    best = None
    for _ in range(ROUNDS):
        dataset = paddle.distributed.InMemoryDataset()
        dataset.init(batch_size=512, thread_num=1, use_var=use_var, pipe_command="cat")
        dataset.set_filelist([path])
        begin = cpu_now()
        dataset.load_into_memory()
        seconds = cpu_now() - begin
        if dataset.get_memory_data_size() != lines:
            sys.exit(f"{dataset.get_memory_data_size()} of {lines} lines were loaded")
        best = seconds if best is None else min(best, seconds)
        dataset.release_memory()
    print(json.dumps({"lines_per_s": lines / best, "best_s": 512 * best / lines, "version": paddle.__version__}))


main()
