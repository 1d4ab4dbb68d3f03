"""The one door to pynvml: every call gives a value or raises `CallFailed`, whatever the bindings raised.

Only this module imports pynvml, and only the sampling child imports this module: loading the driver's library into
a process ties that process to the driver's life.
"""

from __future__ import annotations

from typing import Any, Callable

import pynvml

from gua.model import Fault, FaultKind

TEMPERATURE_GPU = 0  # nvmlTemperatureSensors_t
MIG_ENABLED = 1  # NVML_DEVICE_MIG_ENABLE
MEMORY_V2 = 0x02000028  # NVML_STRUCT_VERSION(Memory, 2): size 40, version 2

FUNCTION_NOT_FOUND = "FUNCTION_NOT_FOUND"
GPU_IS_LOST = "GPU_IS_LOST"
# This card, driver or pair of driver and bindings cannot do that: asking again gives the same answer.
UNSUPPORTED_ERRORS = frozenset({"NOT_SUPPORTED", FUNCTION_NOT_FOUND, "ARGUMENT_VERSION_MISMATCH", "DEPRECATED"})
# The driver cannot be used from this process any more, when every card says so.
DRIVER_ERRORS = frozenset({"UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH", "LIBRARY_NOT_FOUND"})

# What newer bindings make of a function the driver lacks; older ones do not have the class.
_LIBRARY_MISMATCH: Any = getattr(pynvml, "NVMLLibraryMismatchError", ())

_ERROR_NAMES: dict[int, str] = {
    value: name[len("NVML_ERROR_") :] for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")
}
_ERROR_NAMES[0] = "SUCCESS"  # older bindings raise it where a list is empty

# A list may grow between the call that asks for its length and the one that fetches it.
_STABLE_TRIES = 3

# Functions that were asked for and that the driver, or the bindings, do not have. pynvml is one per process as well.
missing: set[str] = set()
_observers: list[Callable[[str], None]] = []


class CallFailed(Exception):
    """One NVML call gave no value; `fault` says which and why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.call}: {fault.error}")
        self.fault = fault


def observe(observer: Callable[[str], None]) -> None:
    """Have the name of every call told to `observer` just before it begins."""
    _observers.append(observer)


def call(name: str, *args: Any) -> Any:
    """What the NVML function `name` returns, as pynvml gives it.

    Raises CallFailed, also where the bindings lack the function (FUNCTION_NOT_FOUND) or stumble themselves (the
    exception's class is the error's name).
    """
    function = getattr(pynvml, name, None)
    for observer in _observers:
        observer(name)
    if function is None:
        raise failure(name, FUNCTION_NOT_FOUND, "the installed nvidia-ml-py does not have it")
    try:
        return function(*args)
    except pynvml.NVMLError as exc:
        raise failure(name, _error_name(exc), one_line(exc)) from exc
    except _LIBRARY_MISMATCH as exc:
        raise failure(name, FUNCTION_NOT_FOUND, "the driver does not have it") from exc
    except Exception as exc:  # pynvml decodes, casts and loads: what that raises is listed nowhere
        raise failure(name, type(exc).__name__, one_line(exc)) from exc


def call_until_stable(name: str, *args: Any) -> Any:
    """`call` for a list that others may make longer meanwhile: asked again, a few times, when it did."""
    for _ in range(_STABLE_TRIES - 1):
        try:
            return call(name, *args)
        except CallFailed as exc:
            if exc.fault.error != "INSUFFICIENT_SIZE":
                raise
    return call(name, *args)


def make(name: str) -> Any:
    """A new structure of the bindings. Raises CallFailed where they do not have it."""
    structure = getattr(pynvml, name, None)
    if structure is None:
        raise failure(name, FUNCTION_NOT_FOUND, "the installed nvidia-ml-py does not have it")
    return structure()


def failure(name: str, error: str, message: str) -> CallFailed:
    """The exception for one failed call, of the kind that belongs to its error."""
    if error == FUNCTION_NOT_FOUND:
        missing.add(name)
    kind = FaultKind.UNSUPPORTED if error in UNSUPPORTED_ERRORS else FaultKind.FAILED
    fault = Fault(call=name, error=error, kind=kind, message=message)
    return CallFailed(fault)


def call_text(name: str, *args: Any) -> str:
    """`call` for a function that gives text. Raises CallFailed, with IMPOSSIBLE_VALUE where it is empty."""
    return to_text(name, call(name, *args))


def to_text(name: str, value: Any) -> str:
    """The text that the function `name` gave: bytes in some versions of the bindings, str in others."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    if not text.strip():
        raise failure(name, "IMPOSSIBLE_VALUE", "the driver answered an empty text")
    return text


def call_number(name: str, *args: Any, highest: int) -> int:
    """`call` for a function that gives one number; above `highest` it raises CallFailed IMPOSSIBLE_VALUE."""
    return believable(name, call(name, *args), highest=highest)


def believable(name: str, value: Any, *, highest: int) -> int:
    """The value as an int of 0 to `highest`; drivers fill readings they do not have with ones or rubbish."""
    number = int(value)
    if not 0 <= number <= highest:
        raise failure(name, "IMPOSSIBLE_VALUE", f"the driver answered {number}")
    return number


def _error_name(error: Any) -> str:
    code = int(error.value)
    return _ERROR_NAMES.get(code, f"ERROR_{code}")


def one_line(exc: Exception) -> str:
    """What it says, without line breaks."""
    return " ".join(str(exc).split())
