"""1.x: DistributeTranspilerConfig, a loader with start and reset, saves, the default role maker."""
import paddle
import paddle.fluid as fluid
from click_net import files, infer, net, samples, start_anew
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

fleet.init()
inputs, loss, auc, predict, states = net()
loader = fluid.io.PyReader(feed_list=inputs, capacity=64, iterable=False, use_double_buffer=False)
config = DistributeTranspilerConfig()
config.sync_mode = True
optimizer = fleet.distributed_optimizer(fluid.optimizer.Adam(learning_rate=0.01), config)
optimizer.minimize(loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
elif fleet.is_worker():
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    mine = fleet.split_files(files())
    loader.decorate_sample_list_generator(paddle.batch(paddle.reader.shuffle(samples(mine), buf_size=100), batch_size=20))
    for epoch in range(12):
        start_anew(states)
        loader.start()
        try:
            while True:
                value, = exe.run(program=fleet.main_program, fetch_list=[auc.name])
        except fluid.core.EOFException:
            loader.reset()
        print("epoch %d auc %.4f" % (epoch, value), flush=True)
    if fleet.is_first_worker():
        fleet.save_persistables(executor=exe, dirname="saved", main_program=fleet.main_program)
        fleet.save_inference_model(exe, "model", [v.name for v in inputs[:-1]], [predict])
        infer("model")
    fleet.stop_worker()
