"""Weight decay, of one parameter (ParamAttr.regularizer) or of all (weight_decay of an optimizer)."""
__all__ = ["L1Decay", "L2Decay"]


class WeightDecayRegularizer:
    def __init__(self, coeff=0.0):
        self._coeff = float(coeff)

    @property
    def coeff(self):
        return self._coeff

    def options(self):
        """As the C++ side takes it."""
        return {self.key: self._coeff}

    def __str__(self):
        return f"{type(self).__name__}, coeff={self._coeff}"


class L1Decay(WeightDecayRegularizer):
    """Adds coeff * sign(parameter) to its gradient."""
    key = "l1"


class L2Decay(WeightDecayRegularizer):
    """Adds coeff * parameter to its gradient."""
    key = "l2"
