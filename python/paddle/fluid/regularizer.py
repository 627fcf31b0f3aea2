from paddle import regularizer as _new


class L1Decay(_new.L1Decay):
    def __init__(self, regularization_coeff=0.0):
        super().__init__(regularization_coeff)


class L2Decay(_new.L2Decay):
    def __init__(self, regularization_coeff=0.0):
        super().__init__(regularization_coeff)


L1DecayRegularizer, L2DecayRegularizer = L1Decay, L2Decay
WeightDecayRegularizer = _new.WeightDecayRegularizer
