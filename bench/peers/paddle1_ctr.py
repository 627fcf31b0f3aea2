"""The job of ctr.py in the API of 1.x. FleetX (under fleetrun) and PaddlePaddle 1.8 run this same script; without a
launcher it starts a server and as many workers as its argument says."""
import os
import sys

import ctr


def start(workers):
    server, = ctr.free_ports(1)
    shared = {"PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:%d" % server, "PADDLE_TRAINERS_NUM": str(workers),
              "POD_IP": "127.0.0.1", "PADDLE_PORT": str(server)}
    roles = [("PSERVER", 0)] + [("TRAINER", i) for i in range(workers)]
    ctr.launch(["server" if role == "PSERVER" else "worker" for role, _ in roles],
               [dict(shared, TRAINING_ROLE=role, PADDLE_TRAINER_ID=str(i)) for role, i in roles])


def network(fluid):
    dense = fluid.data("dense", [None, ctr.NUMBERS], "float32")
    slots = [fluid.data("C%d" % i, [None, 1], "int64", lod_level=1) for i in range(ctr.SLOTS)]
    label = fluid.data("label", [None, 1], "int64")
    table = fluid.ParamAttr(name="table", initializer=fluid.initializer.Uniform(-0.1, 0.1))
    rows = [fluid.layers.reshape(fluid.embedding(slot, [ctr.IDS, ctr.DIM], is_sparse=True, param_attr=table),
                                 [-1, ctr.DIM]) for slot in slots]
    x = fluid.layers.concat(rows + [dense], axis=1)
    for width in ctr.HIDDEN:
        x = fluid.layers.fc(x, width, act="relu")
    score = fluid.layers.elementwise_add(fluid.layers.fc(x, 1), fluid.layers.fc(dense, 1))
    loss = fluid.layers.mean(fluid.layers.log_loss(fluid.layers.sigmoid(score), fluid.layers.cast(label, "float32")))
    return [dense] + slots + [label], loss


def main():
    if "TRAINING_ROLE" not in os.environ:
        start(int(sys.argv[1]))
    import paddle
    import paddle.fluid as fluid
    from paddle.fluid.incubate.fleet.base import role_maker
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
    fleet.init(role_maker.PaddleCloudRoleMaker())
    feeds, loss = network(fluid)
    if ctr.mode() == "geo":
        strategy = StrategyFactory.create_geo_strategy(ctr.GEO_STEPS)
    else:
        strategy = getattr(StrategyFactory, "create_%s_strategy" % ctr.mode())()
    fleet.distributed_optimizer(fluid.optimizer.SGD(ctr.RATE), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)

    def train(files):
        dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_use_var(feeds)
        dataset.set_pipe_command("cat")
        dataset.set_batch_size(ctr.BATCH)
        dataset.set_thread(1)
        dataset.set_filelist(files)
        exe.train_from_dataset(fleet.main_program, dataset)

    ctr.measure(fleet.worker_index(), fleet.worker_num(), train, paddle.__version__)
    fleet.stop_worker()


if __name__ == "__main__":
    main()
