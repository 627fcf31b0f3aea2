"""Averages of fetched values."""
import numpy


class WeightedAverage:
    def __init__(self):
        self.reset()

    def reset(self):
        self.numerator = self.denominator = None

    def add(self, value, weight):
        value, weight = numpy.asarray(value, "float64"), float(numpy.asarray(weight).reshape(-1)[0])
        self.numerator = value * weight + (0.0 if self.numerator is None else self.numerator)
        self.denominator = weight + (0.0 if self.denominator is None else self.denominator)

    def eval(self):
        if not self.denominator:
            raise ValueError("WeightedAverage.eval: there is no data; call add first")
        return self.numerator / self.denominator
