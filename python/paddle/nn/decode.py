from paddle.fluid.layers.decoding import BeamSearchDecoder, dynamic_decode  # noqa: F401
