"""Momentum with L2 decay, clipping and a learning rate in steps on servers; a handler, compiled programs, small calls of fleet."""
import numpy as np
import paddle
import paddle.fluid as fluid
from click_net import files, net, samples, start_anew
from paddle.distributed import fleet

paddle.enable_static()
fleet.init()
inputs, loss, auc, predict, states = net()
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
rate = fluid.layers.piecewise_decay([300, 500], [0.05, 0.03, 0.01])
optimizer = fluid.optimizer.Momentum(rate, 0.9, regularization=fluid.regularizer.L2Decay(1e-6),
                                     grad_clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0))
fleet.distributed_optimizer(optimizer, strategy).minimize(loss)


class Handler(fluid.executor.FetchHandler):
    seen = 0

    def handler(self, res_dict):
        self.seen += int(np.sum(res_dict["pos"])) >= 0


if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fleet.init_worker()
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var(inputs)
    dataset.set_batch_size(10)
    dataset.set_thread(4)
    dataset.set_filelist(fleet.util.get_file_shard(files()))
    dataset.preload_into_memory()
    dataset.wait_preload_done()
    dataset.local_shuffle()
    handler = Handler({"pos": states[2]}, 0)
    for epoch in range(10):
        exe.train_from_dataset(fluid.default_main_program(), dataset, thread=4, fetch_handler=handler)
    assert handler.seen > 0
    program = fluid.compiler.CompiledProgram(fleet.main_program).with_data_parallel(loss_name=loss.name)
    loader = fluid.io.DataLoader.from_generator(capacity=64, feed_list=inputs, iterable=True)
    loader.set_sample_list_generator(fluid.io.batch(samples(files()), batch_size=20), places=fluid.cpu_places())
    start_anew(states)
    for feed in loader():
        value, = exe.run(program=program, feed=feed, fetch_list=[auc.name])
    print("auc %.4f" % value, flush=True)
    fleet.barrier_worker()
    assert fleet.util.all_reduce(np.array([1]), "sum").tolist() == [fleet.worker_num()]
    assert fleet.util.all_gather(fleet.worker_index()) == list(range(fleet.worker_num()))
    assert len(fleet.server_endpoints()) == fleet.server_num()
    if fleet.is_first_worker():
        fleet.shrink(0.0)
    fleet.barrier_worker()
    fleet.stop_worker()
