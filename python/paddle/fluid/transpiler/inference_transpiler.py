"""What made a program faster to infer with, before the original planned it."""


class InferenceTranspiler:
    def transpile(self, program, place, scope=None):
        """Nothing: ops are fused when a program is planned. A program for tests comes from clone(for_test=True)."""
