"""PLSC trains a ResNet-50 on eight made-up faces: plsc_losses.py LOSS."""
import os
import sys

import numpy as np
from PIL import Image
from plsc import Entry

os.makedirs("faces/images", exist_ok=True)
with open("faces/label.txt", "w") as labels:
    for i in range(8):
        picture = np.random.RandomState(i).randint(0, 255, (112, 112, 3), dtype=np.uint8)
        Image.fromarray(picture).save(f"faces/images/{i}.jpg")
        labels.write(f"images/{i}.jpg {i % 4}\n")
entry = Entry()
entry.set_train_epochs(1)
entry.set_train_batch_size(4)
entry.set_class_num(4)
entry.set_train_image_num(8)
entry.set_dataset_dir("faces")
entry.set_with_test(False)
entry.set_loss_type(sys.argv[1])
entry.set_model_save_dir("saved")
entry.train()
