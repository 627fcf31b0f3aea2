"""BERT-base learns hidden words from text that is on this machine: fleetrun --gpus=0,1 examples/bert_base.py [steps [tokens]]"""
import itertools
import sys

import fleetx as X
import paddle
from paddle.distributed import fleet

fleet.init(is_collective=True)
steps, tokens = [int(word) for word in sys.argv[1:]] + [100, 1024][len(sys.argv) - 1:]
model = X.applications.BertBase(vocab_size=8000, packed=True)
loader = model.get_train_dataloader(X.dataset.local_text(), tokens=tokens)
optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=1e-4), model.strategy())
optimizer.minimize(model.loss, model.startup_prog)
trainer = X.MultiGPUTrainer()
trainer.fit(model, itertools.islice(loader, steps), start_step=0)
trainer.plot("bert_base.png")
