"""The job of ctr.py in the API of 2.x. FleetX (under fleetrun, or alone) and PaddlePaddle 2.6 run this same script."""
import paddle
from paddle import static
from paddle.distributed import fleet

import ctr


def network():
    dense = static.data("dense", [None, ctr.NUMBERS], "float32")
    slots = [static.data("C%d" % i, [None, 1], "int64", lod_level=1) for i in range(ctr.SLOTS)]
    label = static.data("label", [None, 1], "int64")
    table = paddle.ParamAttr(name="table", initializer=paddle.nn.initializer.Uniform(-0.1, 0.1))
    rows = [look_up(slot, table) for slot in slots]
    x = paddle.concat(rows + [dense], axis=1)
    for width in ctr.HIDDEN:
        x = static.nn.fc(x, width, activation="relu")
    predicted = paddle.nn.functional.sigmoid(static.nn.fc(x, 1) + static.nn.fc(dense, 1))
    loss = paddle.mean(paddle.nn.functional.log_loss(predicted, paddle.cast(label, "float32")))
    return [dense] + slots + [label], loss


def look_up(slot, table):
    if ctr.mode() == "geo":  # whose workers keep the whole table
        rows = static.nn.embedding(slot, [ctr.IDS, ctr.DIM], is_sparse=True, param_attr=table)
    else:
        rows = static.nn.sparse_embedding(slot, [ctr.IDS, ctr.DIM], param_attr=table)
    return paddle.reshape(rows, [-1, ctr.DIM])


def main():
    paddle.enable_static()
    fleet.init()
    feeds, loss = network()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = ctr.mode() != "sync"
    if ctr.mode() == "geo":
        strategy.a_sync_configs = {"k_steps": ctr.GEO_STEPS}
    fleet.distributed_optimizer(paddle.optimizer.SGD(ctr.RATE), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    if fleet.server_num() > 0:
        fleet.init_worker()

    def train(files):
        dataset = paddle.distributed.QueueDataset()
        dataset.init(batch_size=ctr.BATCH, thread_num=1, use_var=feeds, pipe_command="cat")
        dataset.set_filelist(files)
        exe.train_from_dataset(static.default_main_program(), dataset)

    ctr.measure(fleet.worker_index(), fleet.worker_num(), train, paddle.__version__)
    if fleet.server_num() > 0:
        fleet.stop_worker()


if __name__ == "__main__":
    main()
