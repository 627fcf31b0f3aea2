"""Names that exist in the original and not here. Asking for one says so and names the nearest thing."""
import difflib
import dis
import sys


class NotHereError(AttributeError, NotImplementedError):
    """The original has this name, FleetX does not."""


def moved(module_name, names):
    """`lazy` of a getter, for names that another module has."""
    return {name: f"{module_name}:{name}" for name in names.split()}


class NotHereImportError(ImportError, NotImplementedError):
    """The same, of `from module import name`, where Python has words of its own for an AttributeError."""


def refuse(full_name, nearest=None, why=None):
    text = f"{full_name} exists in PaddlePaddle but not in FleetX"
    if why:
        text += f": {why}"
    if nearest and nearest != "nothing":
        text += f"; nearest: {nearest}"
    return NotHereError(text)


def getter(module_name, table, lazy=None):
    """A module-level __getattr__. `table` maps refused names to the nearest thing here; `lazy` maps names of
    submodules to import on first use, and names that moved from one version to another to "module:name"."""
    lazy = lazy or {}

    def __getattr__(name):
        if name in lazy:
            import importlib
            path, _, attribute = lazy[name].partition(":")
            found = importlib.import_module(path)
            found = getattr(found, attribute) if attribute else found
            setattr(sys.modules[module_name], name, found)
            return found
        if name in table:
            raise refuse(f"{module_name}.{name}", table[name])
        if name.startswith("__"):
            raise AttributeError(name)
        from paddle._original import ORIGINAL
        known = [n for n in vars(sys.modules[module_name]) if not n.startswith("_")]
        near = difflib.get_close_matches(name, known, 3)
        if name.endswith("_") and name[:-1] in known:
            raise refuse(f"{module_name}.{name}", name[:-1], "a program's variables are not changed in place")
        if name in ORIGINAL.get(module_name, ()):
            raise refuse(f"{module_name}.{name}", ", ".join(near) or "what docs/python.md lists")
        hint = f"; did you mean {', '.join(near)}?" if near else "; docs/python.md lists what there is"
        raise AttributeError(f"module '{module_name}' has no '{name}'{hint}")

    def __getattr__or_import_error(name):
        try:
            return __getattr__(name)
        except NotHereError as error:
            if not _is_importing():
                raise
            raise NotHereImportError(str(error), name=module_name) from None

    __getattr__or_import_error.lazy = {name: path for name, path in lazy.items() if ":" not in path}  # for the type stubs
    return __getattr__or_import_error


def _is_importing():
    """Is the name asked for by `from module import name`?"""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__getattr__":
        frame = frame.f_back
    if frame is None or frame.f_lasti < 0:
        return False
    return frame.f_code.co_name == "_handle_fromlist" or frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def refused(full_name, nearest=None, why=None):
    """A function in the place of one that is not here."""
    def call(*args, **kwargs):
        raise refuse(full_name, nearest, why)
    call.__name__ = full_name.rsplit(".", 1)[-1]
    return call
