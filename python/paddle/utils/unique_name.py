"""Names of layers and variables: fc_0, fc_1, ... A guard starts counting anew, so that two programs that are built
alike have the same names and share their parameters."""
import contextlib


class UniqueNameGenerator:
    def __init__(self, prefix=None):
        self.ids = {}
        self.prefix = prefix or ""

    def __call__(self, key):
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        return f"{self.prefix}{key}_{number}"


_generator = UniqueNameGenerator()


def generate(key):
    return _generator(key)


def snapshot():
    """A generator that goes on counting from here."""
    other = UniqueNameGenerator(_generator.prefix)
    other.ids = dict(_generator.ids)
    return other


def switch(new_generator=None):
    """Makes another generator the current one; returns the old one."""
    global _generator
    old = _generator
    _generator = new_generator if new_generator is not None else UniqueNameGenerator()
    return old


@contextlib.contextmanager
def guard(new_generator=None):
    if isinstance(new_generator, (str, bytes)):
        prefix = new_generator if isinstance(new_generator, str) else new_generator.decode()
        new_generator = UniqueNameGenerator(prefix)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)
