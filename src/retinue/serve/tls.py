"""Files of TLS, looked at before anything listens or dials."""

import ssl
from pathlib import Path

from retinue.errors import ConfigError


def check_files(authority: Path | None, cert: Path | None, key: Path | None) -> None:
    """Refuses files that a connection could not be set up with.

    Args:
        authority: certificates that the other side's must be signed with.
        cert, key: one's own certificate and its key.

    Raises:
        ConfigError: names the file, and what is wrong with it.
    """
    for path in (authority, cert, key):
        read(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if cert is not None:
            context.load_cert_chain(cert, key, password="")  # or OpenSSL asks at the terminal
    except ssl.SSLError as error:
        raise ConfigError(
            f"{str(cert)!r} and {str(key)!r} are no pair in PEM, or the key has a passphrase:"
            f" {error.reason or error}."
        ) from error
    try:
        if authority is not None:
            context.load_verify_locations(authority)
    except ssl.SSLError as error:
        why = error.reason or error
        raise ConfigError(f"{str(authority)!r} holds no certificate in PEM: {why}.") from error


def read(path: Path | None) -> bytes | None:
    """What is in a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
