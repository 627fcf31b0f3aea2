"""Batches of pictures from a list. Reading, decoding and augmenting happen in C++ threads (fleetx/data)."""
import os
from typing import Dict, Iterator, List, Optional, Sequence, Union

import numpy

from fleetx import _job
from paddle._native import native


class ImageLoader:
    """Iterates over [{image name: float32 array [N,3,size,size], label name: int64 array [N,1]}], what Executor.run
    takes as feed; one iteration is one pass. `loader` and `loader()` are the same.

    Training passes are shuffled alike on all workers, with seed 0, 1, 2, ...; every worker takes its share: worker r
    of n the pictures r, r + n, ... of that order, filled up from its beginning so that all have the same number.
    After a download of shares the workers of a machine divide the pictures that it has, each for as many batches.
    """

    def __init__(self, file_list: Union[str, os.PathLike], batch_size: int, inputs: Sequence[str],
                 image_shape: Sequence[int], train: bool, shuffle: bool, drop_last: bool, classes: int = 0,
                 resize: Optional[int] = None, num_threads: Optional[int] = None, prefetch: int = 4,
                 min_area: float = 0.08, on_damaged: str = "raise", rank: Optional[int] = None,
                 world: Optional[int] = None):
        size = image_shape[-1]
        if len(image_shape) != 3 or image_shape[0] != 3 or image_shape[1] != size:
            raise native.InvalidArgumentError(f"pictures have three colours and are square, not {list(image_shape)}")
        self._train, self._shuffle = train, shuffle
        self._rank = rank if rank is not None else _job.rank() if train else 0
        self._world = world if world is not None else _job.world() if train else 1
        self._pass = 0
        local_rank, local_world = _job.local()
        self._native = native.ImageLoader(
            list=os.fspath(file_list), batch=batch_size, train=train, size=size,
            resize=resize or round(size * 256 / 224), min_area=min_area, classes=classes, shuffle=shuffle,
            drop_last=drop_last, seed=0, rank=self._rank, world=self._world, local_rank=local_rank,
            local_world=local_world,
            threads=num_threads or default_threads(), prefetch=prefetch, on_damaged=on_damaged, image=inputs[0],
            label=inputs[1])

    def __len__(self) -> int:
        return self._native.batches

    @property
    def classes(self) -> int:
        return self._native.classes

    @property
    def damaged(self) -> int:
        """Pictures that were found damaged so far, so that others took their places (on_damaged="replace")."""
        return self._native.damaged

    def __call__(self) -> "ImageLoader":
        return self

    def __iter__(self) -> Iterator[List[Dict[str, numpy.ndarray]]]:
        number = self._pass
        self._pass += 1
        if self._train:
            self._announce(number)
        self._native.begin_pass(number)
        for _ in range(self._native.batches):
            yield [self._native.next()]

    def _announce(self, seed):
        share = -(-self._native.size // self._world)
        if self._shuffle:
            print(f"('reader shuffle seed', {seed})")
        print(f"('trainerid, trainer_count', {self._rank}, {self._world})")
        print(f"read images from {self._rank * share}, length: {share}, lines length: {share}, "
              f"total: {share * self._world}", flush=True)


def default_threads() -> int:
    """4 as in the original, but not more than cores: decoding and training share them."""
    return max(1, min(4, len(os.sched_getaffinity(0))))
