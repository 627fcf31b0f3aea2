"""2.0: a_sync with k_steps and launch_barrier, a data set, AUC over all workers."""
import paddle
import paddle.distributed.fleet as fleet
import paddle.distributed.fleet.base.role_maker as role_maker
from click_net import files, infer, net

paddle.enable_static()
fleet.init(role_maker.PaddleCloudRoleMaker())
inputs, loss, auc, predict, states = net()
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
strategy.a_sync_configs = {"k_steps": 5, "launch_barrier": False}
fleet.distributed_optimizer(paddle.fluid.optimizer.SGD(learning_rate=0.5), strategy).minimize(loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
elif fleet.is_worker():
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=inputs, pipe_command="cat", batch_size=10, thread_num=2)
    dataset.set_filelist(fleet.util.get_file_shard(files()))
    for epoch in range(15):
        exe.train_from_dataset(paddle.static.default_main_program(), dataset, paddle.static.global_scope(), debug=False)
        value = fleet.metrics.auc(states[2].name, states[3].name, paddle.static.global_scope(), fleet.util)
        print("epoch %d auc %.4f" % (epoch, value), flush=True)
    if fleet.is_first_worker():
        fleet.save_inference_model(exe, "model", [v.name for v in inputs[:-1]], [predict],
                                   paddle.static.default_main_program())
        infer("model")
    fleet.stop_worker()
