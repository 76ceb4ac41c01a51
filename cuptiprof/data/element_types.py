"""Types of tensor elements as torch's traces name them ("Float", "c10::BFloat16", "long int"), by torch's names in Python, with their sizes."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, tuple[int, tuple[str, ...]]] = {
    # as Python has it: (bytes, as c10::ScalarType has it and as C++ does)
    "float32": (4, ("Float", "float")),
    "float64": (8, ("Double", "double")),
    "float16": (2, ("Half", "c10::Half")),
    "bfloat16": (2, ("BFloat16", "c10::BFloat16")),
    "float8_e4m3fn": (1, ("Float8_e4m3fn", "c10::Float8_e4m3fn")),
    "float8_e5m2": (1, ("Float8_e5m2", "c10::Float8_e5m2")),
    "int64": (8, ("Long", "long int", "long")),
    "int32": (4, ("Int", "int")),
    "int16": (2, ("Short", "short int", "short")),
    "int8": (1, ("Char", "signed char")),
    "uint8": (1, ("Byte", "unsigned char")),
    "bool": (1, ("Bool", "bool")),
    "complex64": (8, ("ComplexFloat", "c10::complex<float>")),
    "complex128": (16, ("ComplexDouble", "c10::complex<double>")),
}
_BY_NAME = {name: (python, size) for python, (size, names) in _TYPES.items() for name in (python, *names)}


def type_name(name: Any) -> str:
    """As Python has it; what is not known as it is."""
    return _BY_NAME.get(str(name), (str(name), 0))[0]


def element_size(name: Any) -> int:
    """Bytes of an element; 0: no such type."""
    return _BY_NAME.get(str(name), ("", 0))[1]


def element_count(shape: Any) -> int:
    """Elements of a shape, or of a list of shapes.

    Raises:
        TypeError, ValueError: it is none.
    """
    if not isinstance(shape, list):
        raise TypeError(type(shape))
    if any(isinstance(size, list) for size in shape):
        return sum(element_count(one) for one in shape)
    count = 1
    for size in shape:
        if not isinstance(size, int) or not 0 <= size < 1 << 48:
            raise ValueError(size)
        count *= size
    if count >= 1 << 60:
        raise ValueError(count)
    return count
