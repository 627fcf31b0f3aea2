"""Pictures per second of a PyTorch DataLoader with Pillow: random crop, mirror, normalise, 224 x 224 f32.
   torch_images.py LIST SECONDS WORKERS"""
import json
import math
import pathlib
import random
import sys
import time

import numpy
import PIL
import torch
from PIL import Image

MEAN = numpy.array([0.485, 0.456, 0.406], "float32")
SCALE = 1 / (255 * numpy.array([0.229, 0.224, 0.225], "float32"))


def crop_of(width, height):
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if w <= width and h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return left, top, left + w, top + h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, (width + side) // 2, (height + side) // 2


class Pictures(torch.utils.data.Dataset):
    def __init__(self, path):
        folder = pathlib.Path(path).parent
        self.lines = [line.split() for line in pathlib.Path(path).read_text().splitlines()]
        self.lines = [(folder / name, int(label)) for name, label in self.lines]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        name, label = self.lines[index]
        image = Image.open(name)
        box = crop_of(*image.size)
        image = image.convert("RGB").resize((224, 224), Image.BILINEAR, box=box)
        pixels = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous().float()
        if random.random() < 0.5:
            pixels = pixels.flip(2)
        shift = torch.from_numpy(255 * MEAN)[:, None, None]
        return (pixels - shift) * torch.from_numpy(SCALE)[:, None, None], label


def main():
    path, seconds, workers = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Pictures(path), batch_size=32, shuffle=True, drop_last=True,
                                         num_workers=workers, persistent_workers=workers > 0)
    done, begin = 0, None
    while begin is None or time.perf_counter() - begin < seconds:
        for images, _ in loader:
            if begin is None:  # what it takes to start workers is not counted
                begin = time.perf_counter()
                continue
            done += len(images)
            if time.perf_counter() - begin >= seconds:
                break
    rate = done / (time.perf_counter() - begin)
    print(json.dumps({"train": rate, "version": f"torch {torch.__version__}, Pillow {PIL.__version__}"}))


if __name__ == "__main__":
    main()
