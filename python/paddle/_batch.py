def batch(reader, batch_size, drop_last=False):
    """A reader of lists of `batch_size` samples."""
    if not callable(reader):
        raise TypeError(f"the reader must be a function that returns an iterator, not a {type(reader).__name__}")
    batch_size = int(batch_size)
    if batch_size <= 0:
        raise ValueError(f"batch_size must be above 0, got {batch_size}")

    def batch_reader():
        samples = []
        for sample in reader():
            samples.append(sample)
            if len(samples) == batch_size:
                yield samples
                samples = []
        if samples and not drop_last:
            yield samples

    return batch_reader
