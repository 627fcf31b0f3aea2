"""Makes readers of readers."""
import itertools
import queue
import random
import threading

__all__ = ["cache", "map_readers", "buffered", "compose", "chain", "shuffle", "firstn", "xmap_readers",
           "multiprocess_reader", "ComposeNotAligned"]


class ComposeNotAligned(ValueError):
    pass


def cache(reader):
    """Keeps all samples in memory."""
    samples = tuple(reader())
    return lambda: iter(samples)


def map_readers(func, *readers):
    return lambda: map(func, *[r() for r in readers])


def shuffle(reader, buf_size):
    """Shuffles within windows of `buf_size` samples."""
    def shuffled():
        window = []
        for sample in reader():
            window.append(sample)
            if len(window) >= buf_size:
                random.shuffle(window)
                yield from window
                window = []
        random.shuffle(window)
        yield from window
    return shuffled


def chain(*readers):
    return lambda: itertools.chain(*[r() for r in readers])


def compose(*readers, check_alignment=True):
    """Samples of several readers side by side in one tuple."""
    def as_tuple(sample):
        return sample if isinstance(sample, tuple) else (sample,)

    def composed():
        iterators = [r() for r in readers]
        missing = object()
        together = itertools.zip_longest(*iterators, fillvalue=missing) if check_alignment else zip(*iterators)
        for samples in together:
            if any(s is missing for s in samples):
                raise ComposeNotAligned("the composed readers have different numbers of samples")
            yield sum((as_tuple(s) for s in samples), ())
    return composed


def firstn(reader, n):
    return lambda: itertools.islice(reader(), n)


class _Failed:
    def __init__(self, error):
        self.error = error


_END = object()


def _fill(source, out, stop):
    """Moves samples into a queue until the source or the consumer ends. Errors travel along."""
    try:
        for sample in source():
            if not _put(out, sample, stop):
                return
        _put(out, _END, stop)
    except BaseException as error:
        _put(out, _Failed(error), stop)


def _put(out, item, stop):
    while not stop.is_set():
        try:
            out.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False


def buffered(reader, size):
    """Reads ahead, in a thread, at most `size` samples."""
    def read():
        ahead = Ahead(reader, size)
        try:
            yield from ahead
        finally:
            ahead.close()
    return read


class Ahead:
    """The samples of a reader, of which a thread makes at most `size` ahead."""

    _stop = None

    def __init__(self, reader, size):
        self._made, self._stop = queue.Queue(maxsize=max(1, size)), threading.Event()
        threading.Thread(target=_fill, args=(reader, self._made, self._stop), daemon=True).start()

    def __iter__(self):
        return self

    def __next__(self):
        sample = self._made.get()
        if sample is _END:
            raise StopIteration
        if isinstance(sample, _Failed):
            raise sample.error
        return sample

    def size(self):
        """How many are ready."""
        return self._made.qsize()

    def close(self):
        if self._stop is not None:
            self._stop.set()

    __del__ = close


def xmap_readers(mapper, reader, process_num, buffer_size, order=False):
    """Applies `mapper` in `process_num` threads; order=True keeps the order of the samples."""
    def read():
        todo, done, stop = queue.Queue(max(1, buffer_size)), queue.Queue(max(1, buffer_size)), threading.Event()

        def number():
            return enumerate(reader())

        def work():
            while not stop.is_set():
                try:
                    item = todo.get(timeout=0.1)
                except queue.Empty:
                    continue
                if item is _END or isinstance(item, _Failed):
                    _put(todo, item, stop)  # for the other threads
                    _put(done, item, stop)
                    return
                try:
                    _put(done, (item[0], mapper(item[1])), stop)
                except BaseException as error:
                    _put(done, _Failed(error), stop)
                    return

        threads = [threading.Thread(target=work, daemon=True) for _ in range(process_num)]
        threads.append(threading.Thread(target=_fill, args=(number, todo, stop), daemon=True))
        for thread in threads:
            thread.start()
        try:
            ended, wanted, early = 0, 0, {}
            while ended < process_num:
                item = done.get()
                if item is _END:
                    ended += 1
                elif isinstance(item, _Failed):
                    raise item.error
                elif not order:
                    yield item[1]
                else:
                    early[item[0]] = item[1]
                    while wanted in early:
                        yield early.pop(wanted)
                        wanted += 1
        finally:
            stop.set()
    return read


def multiprocess_reader(readers, use_pipe=True, queue_size=1000):
    """Samples of several readers as they come, each read by a thread."""
    def read():
        out, stop = queue.Queue(maxsize=queue_size), threading.Event()
        for reader in readers:
            threading.Thread(target=_fill, args=(reader, out, stop), daemon=True).start()
        try:
            ended = 0
            while ended < len(readers):
                sample = out.get()
                if sample is _END:
                    ended += 1
                elif isinstance(sample, _Failed):
                    raise sample.error
                else:
                    yield sample
        finally:
            stop.set()
    return read
