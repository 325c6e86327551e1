"""Stand-ins for packages that Megatron Bridge imports with its models and that its config classes never
call: Transformer Engine has to be compiled for a device, the others are about data. `BRIDGE_STAND_INS=
bridge_stand_ins` makes differential_bridge.py import this first; what is installed is left alone."""
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import typing

NAMES = ("transformer_engine", "datasets", "megatron.energon", "PIL")

if not hasattr(typing, "override"):
    typing.override = lambda function: function  # Python before 3.12


class Kind(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class Anything(metaclass=Kind):
    """A base class, a decorator, a value: whatever an import makes of it."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *given, **_):
        return given[0] if len(given) == 1 and callable(given[0]) else Anything


class Module(types.ModuleType):
    __path__: list = []
    __version__ = "2.9.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last, so only for what is not there."""

    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in NAMES):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(Finder())
