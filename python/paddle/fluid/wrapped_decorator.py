"""Decorators that keep the signature of what they decorate."""
import contextlib
import functools

signature_safe_contextmanager = contextlib.contextmanager


def wrap_decorator(decorator_func):
    """A decorator whose results look like the functions they were made of."""
    def decorate(function):
        return functools.wraps(function)(decorator_func(function))
    return decorate
