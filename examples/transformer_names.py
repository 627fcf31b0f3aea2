"""A small Transformer learns to write names in Ukrainian; curves in transformer_names.png:

    python examples/transformer_names.py [passes]
    fleetrun --gpus=0,1 examples/transformer_names.py [passes]
"""
import sys

import fleetx as X
import paddle
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
folder = X.dataset.local_names("uk")
model = X.applications.Transformer("small", vocab_size=600, label_smoothing=0.05, packed=True)  # or Transformer()
loader = model.get_train_dataloader(folder, tokens=1024, merges=100)
rate = paddle.optimizer.lr.NoamDecay(d_model=128, warmup_steps=300, learning_rate=0.5)
optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=rate, beta2=0.98, epsilon=1e-9),
                                        fleet.DistributedStrategy())
optimizer.minimize(model.loss, model.startup_prog)
trainer = X.MultiGPUTrainer()
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 8):
    for feed, in loader:
        trainer.fit(model, [feed])
        rate.step()
    trainer.val(model, model.get_val_dataloader(folder))
if fleet.worker_index() == 0:
    trainer.plot("transformer_names.png")
    for name in ("Manchester", "Florida", "North Holland"):
        print(name, "->", model.translate(name))
    print(f"BLEU of characters, greedy: {model.bleu(folder, beams=1, unit='char'):.2f}, "
          f"beam 4: {model.bleu(folder, beams=4, unit='char'):.2f}")
