"""Reads the numbers of a MATLAB 5 file, as far as the flower data set needs it."""
import struct
import zlib

import numpy

from paddle._native import native

_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15


def _elements(data, source):
    """(type, content) of the pieces of a file or matrix."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind >> 16:  # small element: size and content in the head
            yield kind & 0xFFFF, data[at + 4:at + 4 + (kind >> 16)]
            at += 8
            continue
        if at + 8 + size > len(data):
            raise native.CorruptFileError(f"{source}: an element of {size} bytes goes beyond the end of the file")
        yield kind, data[at + 8:at + 8 + size]
        at += 8 + (size if kind == _COMPRESSED else (size + 7) // 8 * 8)


def load(path):
    """{name: numbers} of all matrices."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 128 or data[126:128] != b"IM":
        raise native.CorruptFileError(f"{path} is not a MATLAB 5 file")
    out = {}
    for kind, content in _elements(data[128:], path):
        if kind == _COMPRESSED:
            try:
                inner = list(_elements(zlib.decompress(content), path))
            except zlib.error as error:
                raise native.CorruptFileError(f"{path}: {error}") from error
            kind, content = inner[0]
        if kind != _MATRIX:
            continue
        parts = list(_elements(content, path))
        if len(parts) < 4 or parts[3][0] not in _TYPES:
            raise native.CorruptFileError(f"{path}: a matrix without numbers")
        name = bytes(parts[2][1]).decode("ascii", "replace")
        out[name] = numpy.frombuffer(parts[3][1], "<" + _TYPES[parts[3][0]])
    return out
