"""CTR-DNN with a loop of one's own, on made-up clicks (fleetx.dataset.generated_clicks):

    fleetrun --server_num=1 --worker_num=2 examples/ctr_servers.py
    python examples/ctr_servers.py                                      # the same without servers

Prints the AUC over the samples of all workers, which goes from 0.77 in the first pass to above 0.95; curves in
ctr_servers.png."""
import fleetx as X
import paddle
from paddle import static
from paddle.distributed import fleet

PASSES = 8

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
    loader = model.load_criteo_from_file(X.dataset.generated_clicks() + "/train", batch_size=50)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(fleet.startup_program)
    if fleet.server_num() > 0:
        fleet.init_worker()
    curves = {"loss": [], "AUC": []}
    for i in range(PASSES):
        for state in model.auc_states:
            tensor = static.global_scope().find_var(state.name).get_tensor()
            tensor.set(0 * tensor.numpy())
        losses = [float(exe.run(fleet.main_program, feed=feed, fetch_list=[model.loss])[0]) for feed in loader]
        auc = fleet.metrics.auc(*(s.name for s in model.auc_states))
        if fleet.is_first_worker():
            print("pass %d: loss %.4f, AUC %.4f" % (i, sum(losses) / len(losses), auc), flush=True)
            curves["loss"].append((i + 1, sum(losses) / len(losses)))
            curves["AUC"].append((i + 1, auc))
    if fleet.is_first_worker():
        X.utils.plot_curves("ctr_servers.png", {name: {"training": points} for name, points in curves.items()}, "pass", [True, False])
    if fleet.server_num() > 0:
        fleet.stop_worker()
