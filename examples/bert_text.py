"""BERT learns hidden words from text that is on this machine: fleetrun --gpus=0,1 examples/bert_text.py"""
import fleetx as X
import paddle
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
model = X.applications.Bert(vocab_size=4000, hidden=128, layers=2, heads=4, max_seq_len=64)  # or X.applications.BertBase()
loader = model.get_train_dataloader(X.dataset.local_text(), batch_size=16)
optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=1e-3), fleet.DistributedStrategy())
optimizer.minimize(model.loss, model.startup_prog)
trainer = X.MultiGPUTrainer()
trainer.fit(model, loader, epoch=1)
trainer.val(model, model.get_val_dataloader(X.dataset.local_text(), batch_size=16))
