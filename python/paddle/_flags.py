"""Flags of the original. They steer devices, allocators and passes that are not here: what is set is kept and changes
nothing."""
import os


class Flags(dict):
    def __missing__(self, name):
        text = os.environ.get(name, "0")
        return text if not text.lstrip("-").isdigit() else int(text)


flags = Flags()
