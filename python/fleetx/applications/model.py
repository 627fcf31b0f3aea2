"""Image classifiers. The networks are built by fleetx/models; here are their inputs, losses and loaders."""
import os
from typing import Dict, List, Optional, Sequence

import numpy

import paddle
from fleetx.applications.parameters import Parameters
from fleetx.dataset import ImageLoader
from paddle import static
from paddle._graph import switch_main_program, switch_startup_program
from paddle._native import native, user_line


class Model(Parameters):
    """A network in programs of its own, which become the default ones.

    inputs -- the variables that are fed; loss; target -- {name: variable} of what is measured besides it
    main_prog, startup_prog; checkpoints -- outputs of the blocks, for strategy.recompute_configs
    data_layout -- of the pictures that are fed, and that its loaders give: "NCHW", or "NHWC" for [N,H,W,3]; image_shape is
        [3,H,W] in either. Kernels choose layouts of their own.
    """

    inputs: List[static.Variable]
    loss: static.Variable
    target: Dict[str, static.Variable]
    checkpoints: List[str]
    main_prog: static.Program
    startup_prog: static.Program
    _smoothing = 0.0  # of labels

    def __init__(self, class_dim: int, image_shape: Sequence[int], data_layout: str = "NCHW"):
        if data_layout not in ("NCHW", "NHWC"):
            raise native.InvalidArgumentError(f"data_layout is {data_layout!r}; known: NCHW, NHWC")
        paddle.enable_static()
        self.data_layout = data_layout
        self.class_dim, self.image_shape = class_dim, list(image_shape)
        self.main_prog, self.startup_prog = static.Program(), static.Program()
        switch_main_program(self.main_prog)
        switch_startup_program(self.startup_prog)
        fed, image = self._picture()
        label = static.data("feed_label", [None, 1], "int64")
        self.inputs = [fed, label]
        logits, checkpoints = self._network(self.main_prog.builder(), image.name, *user_line())
        self.logits = self.main_prog.global_block().var(logits)
        self.checkpoints = list(checkpoints)
        self.loss = paddle.mean(paddle.nn.functional.cross_entropy(self.logits, label, label_smoothing=self._smoothing))
        probabilities = paddle.nn.functional.softmax(self.logits)
        self.target = {"acc1": paddle.metric.accuracy(probabilities, label, k=1)}
        if class_dim >= 5:
            self.target["acc5"] = paddle.metric.accuracy(probabilities, label, k=5)

    def _picture(self):
        """What is fed, and the pictures [N,3,H,W] that the network reads."""
        colors, height, width = self.image_shape
        if self.data_layout == "NHWC":
            fed = static.data("feed_image", [None, height, width, colors], "float32")
            return fed, paddle.transpose(fed, [0, 3, 1, 2])
        image = static.data("feed_image", [None, *self.image_shape], "float32")
        return image, image

    def _network(self, builder, image, file, line):
        """Adds the network; returns the names of its logits and of its checkpoints."""
        raise NotImplementedError

    # ---- data ----
    def get_train_dataloader(self, local_path: str, batch_size: int = 32, shuffle: bool = True, use_dali: bool = False,
                             num_threads: Optional[int] = None, prefetch: int = 4, min_area: float = 0.08,
                             on_damaged: str = "raise") -> ImageLoader:
        """Batches of `local_path`/train.txt for training (random crops, mirrored half the time, this worker's share).

        use_dali -- accepted; decoding runs in C++ threads either way
        prefetch -- batches; min_area -- of a crop; on_damaged -- "raise" or "replace"
        """
        return self.load_imagenet_from_file(os.path.join(local_path, "train.txt"), batch_size, shuffle=shuffle,
                                            num_threads=num_threads, prefetch=prefetch, min_area=min_area,
                                            on_damaged=on_damaged)

    def get_val_dataloader(self, local_path: str, batch_size: int = 32, shuffle: bool = False, use_dali: bool = False,
                           num_threads: Optional[int] = None, prefetch: int = 4,
                           on_damaged: str = "raise") -> ImageLoader:
        """Batches of `local_path`/val.txt for validation (resized, cut in the middle; all of it on every worker)."""
        return self.load_imagenet_from_file(os.path.join(local_path, "val.txt"), batch_size, phase="val",
                                            shuffle=shuffle, num_threads=num_threads, prefetch=prefetch,
                                            on_damaged=on_damaged)

    def load_imagenet_from_file(self, filelist: str, batch_size: int = 32, phase: str = "train",
                                shuffle: Optional[bool] = None, data_layout: Optional[str] = None, use_dali: bool = False,
                                num_threads: Optional[int] = None, prefetch: int = 4, min_area: float = 0.08,
                                on_damaged: str = "raise", rank: Optional[int] = None, world: Optional[int] = None,
                                resize: Optional[int] = None) -> "ImageLoader | _ColorsLast":
        """Batches of the pictures in a list of lines `path label`, paths relative to the list's folder.

        data_layout -- that of the model, or nothing
        """
        if phase not in ("train", "val", "test"):
            raise native.InvalidArgumentError(f"phase is {phase!r}; known: train, val, test")
        if data_layout not in (None, self.data_layout):
            raise native.InvalidArgumentError(f"load_imagenet_from_file: data_layout={data_layout!r}, but the model is fed "
                                              f"{self.data_layout}; make it with data_layout={data_layout!r}")
        train = phase == "train"
        loader = ImageLoader(filelist, batch_size, [v.name for v in self.inputs], self.image_shape, train,
                           train if shuffle is None else shuffle, drop_last=train, classes=self.class_dim,
                           resize=resize, num_threads=num_threads, prefetch=prefetch, min_area=min_area,
                           on_damaged=on_damaged, rank=rank, world=world)
        return _ColorsLast(loader, self.inputs[0].name) if self.data_layout == "NHWC" else loader

    def _outputs(self):
        return [self.logits]


class Resnet50(Model):
    """ResNet-50 (version 1.5): 161 trained tensors, 25.56 million parameters for 1000 classes. `width`: channels of its
    first stage, each following one doubles them; less than 64 makes a narrower network of the same depth."""

    def __init__(self, data_layout: str = "NCHW", class_dim: int = 1000, image_shape: Sequence[int] = (3, 224, 224),
                 width: int = 64):
        self._width = width
        super().__init__(class_dim, image_shape, data_layout)

    def _network(self, builder, image, file, line):
        return native.resnet(builder, image, 50, self.class_dim, self._width, "", file, line)


class Resnet50Mlperf(Resnet50):
    """ResNet-50 (version 1.5) as MLPerf trains it: labels smoothed by 0.1, and pictures fed as [N,H,W,3]. Its optimizer is LARS; strategy() has it."""

    _smoothing = 0.1
    _family = "mlperf"

    def __init__(self, data_layout: str = "NHWC", class_dim: int = 1000, image_shape: Sequence[int] = (3, 224, 224),
                 width: int = 64):
        super().__init__(data_layout, class_dim, image_shape, width)


class _ColorsLast:
    """A loader whose pictures are [N,H,W,3]."""

    def __init__(self, loader, image):
        self._loader, self._image = loader, image

    def __len__(self):
        return len(self._loader)

    def __call__(self):
        return self

    def __iter__(self):
        for feed, in self._loader:
            yield [{**feed, self._image: numpy.ascontiguousarray(feed[self._image].transpose(0, 2, 3, 1))}]


class VGG16(Model):
    """VGG16: thirteen convolutions, fully connected layers of 4096, 4096 and `class_dim`."""

    def __init__(self, data_layout: str = "NCHW", class_dim: int = 1000, image_shape: Sequence[int] = (3, 224, 224),
                 dropout: float = 0.5):
        self._dropout = dropout
        super().__init__(class_dim, image_shape, data_layout)

    def _network(self, builder, image, file, line):
        return native.vgg16(builder, image, self.class_dim, self._dropout, "", file, line)
