"""How a gateway is reached: its row, its address, and the key for it. No I/O.

The models of every format that gateways serve are built on it, each with a path of its own.

A key of the environment goes to the vendor that it is for, and to where the environment itself says
that this is: never to an address that a program gives, which may be anybody's. That takes a key
that the program gives too.
"""

import os
from collections.abc import Mapping

from retinue.errors import ConfigError, MissingKeyError, UnknownModelError
from retinue.models.endpoint import Endpoint, check_address, check_key, host_of, origin_of
from retinue.models.failures import Peer
from retinue.models.gateways import ALIASES, COMPATIBLE, GATEWAYS, Gateway


def row_of(gateway: str | Gateway | None, base_url: str | None) -> Gateway:
    """The row that is meant: OpenAI's by default, or that of a server of which nothing is known.

    Raises:
        UnknownModelError: there is no gateway of that name.
    """
    if isinstance(gateway, Gateway):
        return gateway
    if gateway is None:
        return GATEWAYS["openai"] if base_url is None else COMPATIBLE
    row = GATEWAYS.get(ALIASES.get(gateway, gateway))
    if row is None:
        raise UnknownModelError(
            f"There is no gateway {gateway!r}; there are {', '.join(GATEWAYS)}. For any other"
            " compatible server give base_url=... and no gateway."
        )
    return row


def endpoint_of(
    row: Gateway,
    model: str,
    path: str,
    *,
    base_url: str | None,
    api_key: str | None,
    headers: Mapping[str, str | None],
    timeout: float | None,
) -> Endpoint:
    """Where a model of this gateway is asked.

    Args:
        row: the gateway.
        model: the model's name, for errors.
        path: what is appended to the base URL, where it does not end in it.
        base_url: an address instead of the gateway's own.
        api_key: a key instead of the one in the environment.
        headers: further headers of every request; None leaves one out.
        timeout: seconds without a byte before a call fails.

    Raises:
        MissingKeyError: the gateway needs a key and none is given or set.
        ConfigError: the URL or the key cannot be one.
    """
    base = base_url_of(row, base_url)
    url = base if base.endswith(path) else base + path
    key, whence = key_for(row, base, api_key)
    peer = Peer(row.name, host_of(base), model, whence, [key] if key else [])
    given = {name: value for name, value in headers.items() if value is not None}
    return Endpoint(peer, url, {**_key_header(row, key), **given}, timeout)


def base_url_of(row: Gateway, given: str | None) -> str:
    """The base URL that is meant: the one given, the environment's, or the gateway's own.

    Raises:
        ConfigError: there is none, or it cannot be one.
    """
    if given is None and row.url_var is not None and (set_ := os.environ.get(row.url_var)):
        base = check_address(set_, row.url_var)
        return base if base.endswith(row.url_path) else base + row.url_path
    base = given or row.base_url
    if base is None:
        place = f" or set {row.url_var}" if row.url_var else ""
        raise ConfigError(f"{row.name} has no address of its own; give base_url=...{place}.")
    return check_address(base)


def key_for(row: Gateway, base: str, given: str | None) -> tuple[str | None, str]:
    """The key that goes to a base URL, and where it comes from, in words.

    Raises:
        MissingKeyError: the gateway needs a key and there is none for this address.
        ConfigError: the key cannot be one, or the environment's address cannot.
    """
    names, whence = " or ".join(row.key_vars), "api_key"
    key, way = given, "in Python give api_key=..."
    if given is None and names:
        found = next(filter(None, map(os.environ.get, row.key_vars)), None)
        if _is_at_home(row, base):
            key, whence, way = found, names, f"set {names}, or {way}"
        elif found is not None:
            kept = f"the key in {names} goes to {host_of(row.base_url or '')} alone"
            way, whence = f"give api_key=...; {kept}", f"api_key: {kept}"
    key = check_key(row.name, key)
    if key is None and row.needs_key:
        raise MissingKeyError(f"{row.name} needs a key: {way}")
    return key, whence


def _is_at_home(row: Gateway, base: str) -> bool:
    """Whether a base URL is the vendor's own, or the environment's. Where a gateway has no vendor
    who runs it, it is at home wherever it is."""
    if row.base_url is None or origin_of(row.base_url)[1] == "localhost":
        return True
    return origin_of(base) in (origin_of(row.base_url), origin_of(base_url_of(row, None)))


def _key_header(row: Gateway, key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if row.key_header == "authorization":
        return {"Authorization": f"Bearer {key}"}
    return {row.key_header: key}
