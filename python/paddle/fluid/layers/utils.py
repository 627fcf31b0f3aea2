"""Nests of lists, tuples and dicts, as recurrent layers have them for their states."""

__all__ = ["is_sequence", "flatten", "pack_sequence_as", "map_structure", "assert_same_structure", "convert_to_list"]


def is_sequence(seq):
    return isinstance(seq, (list, tuple, dict))


def _parts(nest):
    return [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else list(nest)


def flatten(nest):
    """The leaves, in the order of lists and of sorted keys."""
    return [leaf for part in _parts(nest) for leaf in flatten(part)] if is_sequence(nest) else [nest]


def _packed(structure, leaves):
    if not is_sequence(structure):
        return next(leaves)
    parts = [_packed(part, leaves) for part in _parts(structure)]
    if isinstance(structure, dict):
        return type(structure)(zip(sorted(structure), parts))
    return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)


def pack_sequence_as(structure, flat_sequence):
    """A nest of the form of `structure` with these leaves."""
    leaves = flatten(flat_sequence)
    if len(leaves) != len(flatten(structure)):
        raise ValueError(f"pack_sequence_as: the structure has {len(flatten(structure))} leaves, got {len(leaves)}")
    return _packed(structure, iter(leaves))


def assert_same_structure(nest1, nest2, check_types=True):
    if is_sequence(nest1) != is_sequence(nest2) or (check_types and is_sequence(nest1) and type(nest1) is not type(nest2)):
        raise TypeError(f"the nests differ: {type(nest1).__name__} and {type(nest2).__name__}")
    if is_sequence(nest1):
        if len(nest1) != len(nest2) or (isinstance(nest1, dict) and isinstance(nest2, dict) and nest1.keys() != nest2.keys()):
            raise ValueError(f"the nests differ: {len(nest1)} and {len(nest2)} parts, or other keys")
        for a, b in zip(_parts(nest1), _parts(nest2)):
            assert_same_structure(a, b, check_types)


def map_structure(func, *structure):
    """The nest of func(leaf, ...) of nests of one form."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])


def convert_to_list(value, n, name, dtype=int):
    """n numbers from one, or from n of them."""
    values = [dtype(value)] * n if isinstance(value, dtype) else [dtype(v) for v in value]
    if len(values) != n:
        raise ValueError(f"{name} must be one number or {n} of them, got {value!r}")
    return values
