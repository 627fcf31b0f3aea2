"""Wide & Deep on made-up clicks (fleetx.dataset.generated_clicks) as lines of the Criteo data; workers in step:

    fleetrun --server_num=1 --worker_num=2 examples/wide_deep.py
    python examples/wide_deep.py                                        # the same without servers

Prints a line for the last steps of every pass, and the AUC of 2,500 samples that it has not seen: from 0.83 to 0.9 and more;
curves in wide_deep.png.
The parameters after pass N are in wide_deep_saved/epoch_N; fleet.init_server("wide_deep_saved/epoch_7") goes on from them."""
import fleetx as X
import paddle
from paddle.distributed import fleet

BATCH = 100

fleet.init()
model = X.applications.WideDeep(sparse_feature_dim=10001, embedding_size=8, hidden=[32, 16])
strategy = fleet.DistributedStrategy()
strategy.a_sync = False  # one update per step, with the gradients of all workers
optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(0.006), strategy)
optimizer.minimize(model.loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    folder = X.dataset.generated_clicks()
    each = BATCH // fleet.worker_num()
    train = model.load_criteo_from_file(folder + "/train", batch_size=each)
    val = model.load_criteo_from_file(folder + "/val", batch_size=500, shuffle=False)
    trainer = X.CPUTrainer()
    trainer.fit(model, train, epoch=8, start_step=97, val_dataloader=val, save_path="wide_deep_saved")
    trainer.plot("wide_deep.png")
