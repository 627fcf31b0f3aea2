"""Readers are functions that return iterators over samples; decorators make readers of readers."""
from paddle.reader import decorator
from paddle.reader.decorator import (ComposeNotAligned, buffered, cache, chain, compose, firstn, map_readers,
                                     multiprocess_reader, shuffle, xmap_readers)

__all__ = ["cache", "map_readers", "buffered", "compose", "chain", "shuffle", "firstn", "xmap_readers",
           "multiprocess_reader", "ComposeNotAligned", "decorator"]
