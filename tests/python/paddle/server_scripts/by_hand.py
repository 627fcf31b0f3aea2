"""UserDefinedRoleMaker: by_hand.py ROLE NUMBER SERVERS, each process started by itself; Adagrad with a rate that decays."""
import sys

import paddle.fluid as fluid
from click_net import files, net
from paddle.fluid.incubate.fleet.base.role_maker import Role, UserDefinedRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

role = UserDefinedRoleMaker(current_id=int(sys.argv[2]), role=Role.SERVER if sys.argv[1] == "server" else Role.WORKER,
                            worker_num=2, server_endpoints=sys.argv[3].split(","))
fleet.init(role_maker=role)
inputs, loss, auc, predict, _ = net()
config = DistributeTranspilerConfig()
config.sync_mode = False
config.runtime_split_send_recv = True
rate = fluid.layers.exponential_decay(0.1, 100, 0.9, staircase=True)
fleet.distributed_optimizer(fluid.optimizer.Adagrad(learning_rate=rate), config).minimize(loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
elif fleet.is_worker():
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_batch_size(10)
    dataset.set_use_var(inputs)
    dataset.set_filelist(fleet.split_files(files()))
    for epoch in range(8):
        exe.train_from_dataset(program=fleet.main_program, dataset=dataset, fetch_list=[auc], fetch_info=["auc"])
    fleet.stop_worker()
