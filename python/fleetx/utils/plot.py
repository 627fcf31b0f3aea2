"""Curves as a picture."""
import os
from typing import Mapping, Sequence, Tuple, Union

from paddle._native import native

Points = Sequence[Tuple[float, float]]


def plot_curves(path: Union[str, os.PathLike], panels: Mapping[str, Mapping[str, Points]],
                x: Union[str, Sequence[str]] = "step", from_zero: Union[bool, Sequence[bool]] = True) -> None:
    """Writes a PNG of panels side by side: {title: {label: [(x, y), ...]}}.

    x -- what the x axes are, all or each; from_zero -- the y axes include 0, all or each
    """
    options = [_each("x", x, len(panels)), _each("from_zero", from_zero, len(panels))]
    native.plot_curves(os.fspath(path), [
        {"title": title, "x": name, "from_zero": zero, "series": {label: list(points) for label, points in series.items()}}
        for (title, series), name, zero in zip(panels.items(), *options)])


def _each(name, value, panels):
    values = [value] * panels if isinstance(value, (str, bool)) else list(value)
    if len(values) != panels:
        raise native.InvalidArgumentError(f"plot_curves: {name} has {len(values)} values for {panels} panels")
    return values
