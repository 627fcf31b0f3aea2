"""Inputs of a program, and readers that feed it by themselves (1.x)."""
from paddle import _dtype, _graph, _refuse, static
from paddle.fluid import layers as _layers
from paddle.fluid.layers import data  # noqa: F401
from paddle.io import GeneratorLoader
from paddle.utils import unique_name

__all__ = ["data", "py_reader", "create_py_reader_by_data", "read_file", "double_buffer"]


class PyReader(GeneratorLoader):
    """What py_reader returns: read_file gives its variables, start() and reset() begin and end a pass."""

    def __init__(self, feed_list, capacity, name, use_double_buffer=True):
        super().__init__(feed_list, capacity, use_double_buffer, iterable=False)
        self.name = name or unique_name.generate("py_reader")

    @property
    def variables(self):
        return list(self._feed_list)


def py_reader(capacity, shapes, dtypes, lod_levels=None, name=None, use_double_buffer=True):
    """A reader with an input of each shape and type."""
    if len(shapes) != len(dtypes):
        raise ValueError(f"py_reader: {len(shapes)} shapes for {len(dtypes)} dtypes")
    if lod_levels is not None and len(lod_levels) != len(shapes):
        raise ValueError(f"py_reader: {len(shapes)} shapes for {len(lod_levels)} lod_levels")
    name = name or unique_name.generate("py_reader")
    inputs = [static.data(f"{name}.data_{i}", [-1 if d is None or d < 0 else d for d in shape], _dtype.convert(dtype),
                          lod_levels[i] if lod_levels else 0)
              for i, (shape, dtype) in enumerate(zip(shapes, dtypes))]
    _graph.default_main_program().loose_inputs.update((v.name, v.shape) for v in inputs)
    return PyReader(inputs, capacity, name, use_double_buffer)


def create_py_reader_by_data(capacity, feed_list, name=None, use_double_buffer=True):
    """A reader for inputs that are there already."""
    return PyReader(_graph.as_list(feed_list), capacity, name, use_double_buffer)


def read_file(reader):
    """The variables that a reader feeds: one, or a list of them."""
    if not isinstance(reader, PyReader):
        raise TypeError(f"read_file takes what py_reader returned, not {type(reader).__name__}")
    inputs = reader.variables
    return inputs[0] if len(inputs) == 1 else inputs


def double_buffer(reader, place=None, name=None):
    """Batches are made ahead anyway."""
    return reader


__getattr__ = _refuse.getter(__name__, {**_layers._REFUSED, "Send": "fleet.init_worker", "Recv": "fleet.init_worker",
                                        "ListenAndServ": "fleet.run_server"})
