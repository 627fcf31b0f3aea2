"""Samples from a reader to arrays for Executor.run."""
from paddle import _dtype, _graph
from paddle._native import native
from paddle.io import as_batch


def convert_dtype(dtype):
    """The name of a data type, from anything that names one."""
    return str(_dtype.convert(dtype))


def check_type(input, input_name, expected_type, op_name, extra_message=""):
    if not isinstance(input, expected_type):
        raise TypeError(f"{op_name}: '{input_name}' must be {expected_type}, not {type(input).__name__}. {extra_message}")


def check_dtype(input_dtype, input_name, expected_dtype, op_name, extra_message=""):
    if convert_dtype(input_dtype) not in _graph.as_list(expected_dtype):
        raise TypeError(f"{op_name}: '{input_name}' must be one of {expected_dtype}, not {input_dtype}. {extra_message}")


def check_variable_and_dtype(input, input_name, expected_dtype, op_name, extra_message=""):
    check_type(input, input_name, _graph.Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


class DataFeeder:
    def __init__(self, feed_list, place=None, program=None):
        program = program or _graph.default_main_program()
        self.feed_list = [program.global_block().var(v) if isinstance(v, str) else v for v in feed_list]
        for v in self.feed_list:
            if not isinstance(v, _graph.Variable):
                raise TypeError(f"DataFeeder: feed_list holds a {type(v).__name__}; give variables or their names")
        self.place = place

    def feed(self, iterable):
        """{name: array} of a list of samples."""
        samples = list(iterable)
        if not samples:
            raise native.InvalidArgumentError("DataFeeder.feed: the batch is empty")
        for sample in samples:
            if len(sample) != len(self.feed_list):
                raise native.InvalidArgumentError(
                    f"DataFeeder: a sample has {len(sample)} fields, feed_list has {len(self.feed_list)}")
        return {v.name: as_batch(column, v) for v, column in zip(self.feed_list, zip(*samples))}

    def feed_parallel(self, iterable, num_places=None):
        return [self.feed(samples) for samples in iterable]

    def decorate_reader(self, reader, multi_devices=False, num_places=None, drop_last=True):
        def feeds():
            for samples in reader():
                yield [self.feed(samples)] if multi_devices else self.feed(samples)
        return feeds
