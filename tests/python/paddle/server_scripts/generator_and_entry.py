"""A data generator as pipe_command, sparse_embedding with an entry, a shuffle over all workers."""
import sys

import paddle
import paddle.distributed.fleet as fleet
import paddle.fluid as fluid


class Reader(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            words = line.split()
            yield [("C%d" % i, [int(words[4 + 2 * i])]) for i in (1, 2, 3)] + [("label", [int(words[12])])]
        return samples


def train():
    from click_net import files
    paddle.enable_static()
    fleet.init()
    ids = [paddle.static.data("C%d" % i, [None, 1], "int64", lod_level=1) for i in (1, 2, 3)]
    label = paddle.static.data("label", [None, 1], "int64")
    table = paddle.ParamAttr(name="table", initializer=paddle.nn.initializer.Uniform())
    rows = [paddle.static.nn.sparse_embedding(input=i, size=[1000, 9], param_attr=table,
                                              entry=paddle.distributed.CountFilterEntry(2)) for i in ids]
    x = paddle.concat([fluid.layers.sequence_pool(r, "sum") for r in rows], axis=1)
    predict = paddle.static.nn.fc(paddle.static.nn.fc(x, 16, activation="relu"), 2, activation="softmax")
    loss = paddle.mean(fluid.layers.cross_entropy(predict, label))
    auc, _, states = paddle.static.auc(predict, label)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.01), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(batch_size=20, thread_num=2, pipe_command=f"{sys.executable} {__file__} read", use_var=[*ids, label])
    dataset._init_distributed_settings(parse_ins_id=False, parse_content=False, fleet_send_batch_size=32)
    dataset.set_filelist(fleet.util.get_file_shard(files()))
    dataset.load_into_memory()
    dataset.global_shuffle(fleet, 12)
    assert dataset.get_shuffle_data_size(fleet) == 400
    for epoch in range(10):
        exe.train_from_dataset(paddle.static.default_main_program(), dataset)
        print("auc %.4f" % fleet.metrics.auc(states[2].name, states[3].name), flush=True)
    dataset.release_memory()
    fleet.stop_worker()


if sys.argv[1:] == ["read"]:
    reader = Reader()
    reader.set_batch(16)
    reader.run_from_stdin()
else:
    train()
