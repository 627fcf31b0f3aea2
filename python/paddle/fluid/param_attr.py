from paddle._param import ParamAttr, WeightNormParamAttr  # noqa: F401
