"""Click prediction with parameter servers, on data that are made up here: some words of some slots bring clicks.

    fleetrun --server_num=1 --worker_num=2 examples/ctr_servers.py
    python examples/ctr_servers.py                                      # the same without servers

Prints the AUC over all workers, which goes from 0.6 in the first pass to above 0.95 in the last."""
import os
import random
import tempfile

import fleetx as X
import paddle
from paddle import static
from paddle.distributed import fleet

WORDS, FILES, LINES, PASSES = 50, 4, 1000, 5


def write_files(folder):
    """Lines as in the Criteo data: label, 13 numbers, 26 words."""
    draw = random.Random(1)
    liked = [[draw.random() < 0.3 for _ in range(WORDS)] for _ in range(26)]
    for number in range(FILES):
        with open(os.path.join(folder, f"part-{number}"), "w") as file:
            for _ in range(LINES):
                words = [draw.randrange(WORDS) for _ in range(26)]
                score = sum(liked[slot][word] for slot, word in enumerate(words)) + draw.gauss(0, 1)
                numbers = [str(draw.randrange(10)) for _ in range(13)]
                file.write("\t".join([str(int(score > 7.8)), *numbers, *(f"w{w}" for w in words)]) + "\n")


fleet.init()
model = X.applications.MultiSlotCTR(sparse_feature_dim=100001, embedding_size=8, hidden=[64, 32])
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(0.002), strategy)
optimizer.minimize(model.loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        loader = model.load_criteo_from_file(folder, batch_size=100)
        exe = static.Executor(paddle.CPUPlace())
        exe.run(fleet.startup_program)
        if fleet.server_num() > 0:
            fleet.init_worker()
        for i in range(PASSES):
            for state in model.auc_states:
                tensor = static.global_scope().find_var(state.name).get_tensor()
                tensor.set(0 * tensor.numpy())
            losses = [float(exe.run(fleet.main_program, feed=feed, fetch_list=[model.loss])[0]) for feed in loader]
            auc = fleet.metrics.auc(*(s.name for s in model.auc_states))
            if fleet.is_first_worker():
                print("pass %d: loss %.4f, AUC %.4f" % (i, sum(losses) / len(losses), auc), flush=True)
        if fleet.server_num() > 0:
            fleet.stop_worker()
