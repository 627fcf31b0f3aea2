"""Products and rearrangements of matrices, as combinations of other functions."""
import numpy

from paddle._graph import as_list
from paddle._native import native
from paddle.tensor import creation, manipulation, math

__all__ = ["cross", "diag", "diagonal", "einsum", "kron", "meshgrid", "moveaxis", "tensordot", "trace"]


def _known(x, what, *axes):
    for axis in axes:
        if x.shape[axis] < 0:
            raise native.UnsupportedError(f"{what}: dimension {axis} of '{x.name}' {list(x.shape)} must be known")


def moveaxis(x, source, destination, name=None):
    source, destination = [[a % len(x.shape) for a in as_list(v)] for v in (source, destination)]
    order = [i for i in range(len(x.shape)) if i not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return manipulation.transpose(x, order, name)


def diagonal(x, offset=0, axis1=0, axis2=1, name=None):
    """The elements [i, i + offset] of the matrices in two dimensions, in a new last one."""
    axis1, axis2 = axis1 % len(x.shape), axis2 % len(x.shape)
    _known(x, "diagonal", axis1, axis2)
    rows, columns = x.shape[axis1], x.shape[axis2]
    first = max(0, -offset)
    count = min(rows - first, columns - first - offset)
    if count <= 0:
        raise ValueError(f"diagonal: offset {offset} leads outside of a {rows} x {columns} matrix")
    flat = manipulation.flatten(moveaxis(x, [axis1, axis2], [-2, -1]), -2, -1)
    places = [(first + i) * columns + first + i + offset for i in range(count)]
    return manipulation.index_select(flat, creation.assign(numpy.array(places, "int64")), -1, name)


def trace(x, offset=0, axis1=0, axis2=1, name=None):
    return math.sum(diagonal(x, offset, axis1, axis2), -1, name=name)


def diag(x, offset=0, padding_value=0, name=None):
    """The matrix with this diagonal; of a matrix, its diagonal."""
    if len(x.shape) == 2:
        return diagonal(x, offset, name=name)
    _known(x, "diag", 0)
    size = x.shape[0] + abs(offset)
    if offset:
        x = manipulation.concat([x, creation.zeros([abs(offset)], x.dtype)])
    # Element i is in row i above the diagonal, in column i below it.
    spread = manipulation.reshape(x, [size, 1] if offset > 0 else [1, size])
    there = creation.assign(numpy.eye(size, k=offset, dtype="bool"))
    return manipulation.where(there, spread, creation.full([size, size], padding_value, x.dtype), name)


def meshgrid(*args, name=None):
    """For vectors of lengths a, b, ...: each spread over the grid [a, b, ...]."""
    vectors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    lengths = []
    for v in vectors:
        _known(v, "meshgrid", 0)
        lengths.append(v.shape[0])
    return [manipulation.expand(manipulation.reshape(v, [lengths[i] if j == i else 1 for j in range(len(vectors))]),
                                lengths) for i, v in enumerate(vectors)]


def kron(x, y, name=None):
    """Every element of x times the matrix y, as blocks."""
    _known(x, "kron", 0, 1)
    _known(y, "kron", 0, 1)
    (a, b), (c, d) = x.shape, y.shape
    product = math.multiply(manipulation.reshape(x, [a, 1, b, 1]), manipulation.reshape(y, [1, c, 1, d]))
    return manipulation.reshape(product, [a * c, b * d], name=name)


def cross(x, y, axis=None, name=None):
    """The vector product along a dimension of length 3, by default the first such."""
    if axis is None:
        axis = next((i for i, d in enumerate(x.shape) if d == 3), None)
    if axis is None or x.shape[axis] != 3:
        raise native.InvalidArgumentError(f"cross: '{x.name}' {list(x.shape)} has no dimension of length 3 at {axis}")
    def turned(v, by):
        return manipulation.roll(v, -by, axis)
    return math.subtract(math.multiply(turned(x, 1), turned(y, 2)), math.multiply(turned(x, 2), turned(y, 1)), name=name)


def tensordot(x, y, axes=2, name=None):
    """The sum over pairs of dimensions: the last `axes` of x with the first of y, or those that are named."""
    if isinstance(axes, int):
        over_x, over_y = list(range(len(x.shape) - axes, len(x.shape))), list(range(axes))
    else:
        pairs = [list(a) if isinstance(a, (list, tuple)) else [a] for a in axes]
        over_x, over_y = pairs if len(pairs) == 2 else (pairs[0], pairs[0])
    letters = "abcdefghijklmnopqrstuvwxyz"
    of_x = list(letters[:len(x.shape)])
    of_y = list(letters[len(x.shape):len(x.shape) + len(y.shape)])
    for i, j in zip(over_x, over_y):
        of_y[j] = of_x[i]
    kept = [c for i, c in enumerate(of_x) if i not in [o % len(x.shape) for o in over_x]]
    kept += [c for j, c in enumerate(of_y) if j not in [o % len(y.shape) for o in over_y]]
    return einsum(f"{''.join(of_x)},{''.join(of_y)}->{''.join(kept)}", x, y)


def einsum(equation, *operands):
    """Products of variables with named dimensions, summed over those that the result does not have: 'ij,jk->ik'.
    Letters only, each at most once per operand."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or any(len(t) != len(v.shape) for t, v in zip(terms, operands)):
        raise ValueError(f"einsum: '{equation}' does not fit operands of "
                         f"{', '.join(str(list(v.shape)) for v in operands)}")
    if any(len(set(t)) != len(t) for t in terms) or not left.replace(",", "").isalpha():
        raise native.UnsupportedError(f"einsum: '{equation}': letters only, each at most once per operand")
    if not arrow:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    done, result = terms[0], operands[0]
    for place, (term, operand) in enumerate(zip(terms[1:], operands[1:])):
        later = set("".join(terms[place + 2:])) | set(right)
        done, result = _product(done, result, term, operand, later)
    gone = [i for i, c in enumerate(done) if c not in right]
    if gone:
        result = math.sum(result, gone)
        done = "".join(c for c in done if c in right)
    return result if done == right else manipulation.transpose(result, [done.index(c) for c in right])


def _product(a, x, b, y, later):
    """Two operands by one matmul: dimensions of both that stay are a batch, those that do not are summed over."""
    for term, other in ((a, b), (b, a)):  # what only one has and nobody wants is summed first
        gone = [i for i, c in enumerate(term) if c not in other and c not in later]
        if gone and term is a:
            x, a = math.sum(x, gone), "".join(c for c in a if c in b or c in later)
        elif gone:
            y, b = math.sum(y, gone), "".join(c for c in b if c in a or c in later)
    batch = [c for c in a if c in b and c in later]
    inner = [c for c in a if c in b and c not in later]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    length = {**dict(zip(b, y.shape)), **dict(zip(a, x.shape))}
    if sum(length[c] < 0 for c in batch + rows + columns) > 1 or any(length[c] < 0 for c in inner):
        raise native.UnsupportedError(f"einsum '{a},{b}': at most one dimension, which stays, may be unknown")

    def arranged(term, value, *groups):
        order = [c for group in groups for c in group]
        value = value if order == list(term) else manipulation.transpose(value, [term.index(c) for c in order])
        shape = [length[c] for c in batch]
        for group in groups[1:]:
            sizes = [length[c] for c in group]
            shape.append(-1 if -1 in sizes else int(numpy.prod(sizes, dtype="int64")))
        return manipulation.reshape(value, shape)

    out = math.matmul(arranged(a, x, batch, rows, inner), arranged(b, y, batch, inner, columns))
    names = batch + rows + columns
    return "".join(names), manipulation.reshape(out, [length[c] for c in names] or [1])
