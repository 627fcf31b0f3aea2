"""ResNet-50 on made-up pictures of flowers, with several workers:

    source python/env.sh
    fleetrun --nproc_per_node=2 examples/flowers_fleetx.py
"""
import argparse

import fleetx as X
import paddle
import paddle.distributed.fleet as fleet

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--classes", type=int, default=8, help="kinds of flowers (default: 8)")
parser.add_argument("--train", type=int, default=4000, help="pictures to train on (default: 4000)")
parser.add_argument("--pixels", type=int, default=96, help="width of the pictures (default: 96)")
parser.add_argument("--size", type=int, default=80, help="width of what the network sees (default: 80)")
parser.add_argument("--width", type=int, default=16, help="channels of the first stage; ResNet-50 has 64 (default: 16)")
parser.add_argument("--epochs", type=int, default=25, help="times to go through all pictures (default: 25)")
parser.add_argument("--batch_size", type=int, default=16, help="pictures per step and worker (default: 16)")
parser.add_argument("--lr", type=float, default=0.003, help="highest learning rate (default: 0.003)")
parser.add_argument("--curves", default="flowers_fleetx.png", help="file for the curves")
options = parser.parse_args()

fleet.init(is_collective=True)
folder = X.dataset.generated_flowers(options.classes, options.train, val=400, size=options.pixels)
model = X.applications.Resnet50(class_dim=options.classes, image_shape=[3, options.size, options.size],
                                width=options.width)
train = model.get_train_dataloader(folder, options.batch_size, min_area=0.5, num_threads=1)
val = model.get_val_dataloader(folder, batch_size=50, num_threads=1)

steps = options.epochs * len(train)
schedule = X.utils.linear_warmup_decay(options.lr, steps // 20, steps)
optimizer = paddle.optimizer.Adam(schedule)
optimizer = fleet.distributed_optimizer(optimizer)
optimizer.minimize(model.loss)

trainer = X.MultiGPUTrainer()
for epoch in range(options.epochs):
    trainer.fit(model, train, epoch=1, start_step=len(train) - 2)  # one line per pass
    result = trainer.val(model, val)
if fleet.worker_index() == 0:
    trainer.plot(options.curves)
    print(f"{100 * result['acc1']:.1f} % of 400 pictures it has not seen (guessing: {100 / options.classes:.1f} %); "
          f"curves: {options.curves}")
