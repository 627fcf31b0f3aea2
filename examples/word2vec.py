"""Word2vec on made-up sentences, each about one of eight topics (fleetx.dataset.generated_sentences):

    fleetrun --server_num=1 --worker_num=2 examples/word2vec.py
    python examples/word2vec.py                                         # the same without servers

Prints how many words have a word of their own topic as the nearest one: 70 to 80 % after the first
pass, nearly all after the second; curves in word2vec.png."""
import glob

import fleetx as X
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

TOPICS, WORDS, PASSES = 8, 25, 4

fleet.init()
model = X.applications.Word2vec(dict_size=(TOPICS + 1) * WORDS, embedding_size=16)
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.Adam(0.003), strategy).minimize(model.loss)


def nearest_of_own_topic(exe):
    vectors = model.vectors_of(exe, range(TOPICS * WORDS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = vectors @ vectors.T - 2 * np.eye(len(vectors))  # itself does not count
    return np.mean(likeness.argmax(1) // WORDS == np.arange(len(vectors)) // WORDS)


if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    folder = X.dataset.generated_sentences(TOPICS, WORDS)
    files = fleet.util.get_file_shard(sorted(glob.glob(folder + "/train/*")))
    dataset = model.load_dataset_from_file(folder + "/dict", files, batch_size=100)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(fleet.startup_program)
    if fleet.server_num() > 0:
        fleet.init_worker()
    shares = []
    for i in range(PASSES):
        exe.train_from_dataset(fleet.main_program, dataset, fetch_list=[model.loss], fetch_info=["loss"], print_period=1000)
        fleet.barrier_worker()
        if fleet.is_first_worker():
            shares.append((i + 1, 100 * nearest_of_own_topic(exe)))
            print("pass %d: %.1f %% of the words are nearest to one of their topic" % (i, shares[-1][1]), flush=True)
    if fleet.is_first_worker():
        X.utils.plot_curves("word2vec.png", {"Nearest word is of the topic, %": {"words": shares}}, "pass")
    if fleet.server_num() > 0:
        fleet.stop_worker()
