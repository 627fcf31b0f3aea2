"""Marks of eager code for its translation into programs. Programs are static here: there is nothing to translate, and a
marked function is the function itself."""
from paddle import _refuse

__all__ = ["to_static", "not_to_static"]


def to_static(function=None, input_spec=None, build_strategy=None, property=False):
    """The function, or layer, itself; also as a decorator with arguments."""
    return (lambda marked: marked) if function is None else function


def not_to_static(func=None):
    return to_static(func)


_INFERENCE = "paddle.static.save_inference_model, paddle.static.load_inference_model"
__getattr__ = _refuse.getter(__name__, {"save": _INFERENCE, "load": _INFERENCE, "TranslatedLayer": _INFERENCE,
                                        "TracedLayer": _INFERENCE, "ProgramTranslator": "nothing: programs are static",
                                        "set_code_level": "print(program)", "set_verbosity": "print(program)"})
