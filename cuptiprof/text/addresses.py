"""Names of files as people see them: paths, and addresses (``s3://bucket/run``) whose credentials nobody is to read."""

from __future__ import annotations

import os
import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")
_PART = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL
)
_CONTAINERS = frozenset({"abfs", "abfss", "adl", "az", "wasb", "wasbs"})
"""schemes of Azure's, in which what stands before the @ is a container"""
_HIDDEN = "***"
_LOCAL = ("file://", "local://")


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a name leads elsewhere: ``scheme://...``. ``file://`` is of this machine."""
    text = os.fspath(path)
    return isinstance(text, str) and bool(_SCHEME.match(text)) and not text.startswith(_LOCAL)


def local_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """``file:///x`` as ``/x``; anything else as it is."""
    text = os.fspath(path)
    for prefix in _LOCAL:
        if isinstance(text, str) and text.startswith(prefix):
            return text.removeprefix(prefix)
    return path


def absolute(path: str | os.PathLike[str]) -> str:
    """A path from the root, for a program that may change its folder; an address as it is."""
    return os.fspath(path) if is_address(path) else os.path.abspath(local_path(path))


def shown_path(path: str | os.PathLike[str]) -> str:
    """For messages: not longer than a line or two, printable, without passwords, keys and signatures."""
    text = os.fspath(path)
    if is_address(text):
        text = "::".join(map(_without_secrets, text.split("::")))
    text = text if len(text) <= 200 else f"{text[:100]}...{text[-60:]}"
    return text if text.isprintable() else repr(text)


def redacted(message: str, address: str) -> str:
    """What a library says of an address, without the secrets in it."""
    message = message.replace(address, shown_path(address))
    for secret in sorted(_secrets(address), key=len, reverse=True):
        message = message.replace(secret, _HIDDEN)
    return message


def _without_secrets(part: str) -> str:
    match = _PART.fullmatch(part)
    if match is None:
        return part
    user, at, host = match["authority"].rpartition("@")
    hidden = at and not _is_container(match["scheme"], user)
    authority = f"{_HIDDEN}@{host}" if hidden else match["authority"]
    return f"{match['scheme']}://{authority}{match['path']}{f'?{_HIDDEN}' if match['rest'] else ''}"


def _secrets(address: str) -> set[str]:
    found: set[str] = set()
    for part in address.split("::"):
        match = _PART.fullmatch(part)
        if match is None:
            continue
        user, at, _ = match["authority"].rpartition("@")
        if at and not _is_container(match["scheme"], user):
            found |= {user, *user.split(":", 1)}
        found |= {match["rest"], *re.split(r"[?&#;]|=", match["rest"])}
    return {secret for secret in found if len(secret) >= 4}


def _is_container(scheme: str, user: str) -> bool:
    return scheme.lower() in _CONTAINERS and ":" not in user
