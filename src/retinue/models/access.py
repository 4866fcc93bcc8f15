"""How a gateway is reached: its row, its address, and the key for it. No I/O.

The models of every format that gateways serve are built on it, each with a path of its own.
"""

import os
from collections.abc import Mapping

from retinue.errors import ConfigError, UnknownModelError
from retinue.models.endpoint import Endpoint, check_address, check_key, host_of, missing_key
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
    base = _base_url(row, base_url)
    url = base if base.endswith(path) else base + path
    key = _key(row, api_key)
    where = " or ".join(row.key_vars) if row.key_vars and api_key is None else "api_key"
    peer = Peer(row.name, host_of(base), model, where, [key] if key else [])
    given = {name: value for name, value in headers.items() if value is not None}
    return Endpoint(peer, url, {**_key_header(row, key), **given}, timeout)


def _base_url(row: Gateway, given: str | None) -> str:
    if given is None and row.url_var is not None and (set_ := os.environ.get(row.url_var)):
        base = check_address(set_, row.url_var)
        return base if base.endswith(row.url_path) else base + row.url_path
    base = given or row.base_url
    if base is None:
        place = f" or set {row.url_var}" if row.url_var else ""
        raise ConfigError(f"{row.name} has no address of its own; give base_url=...{place}.")
    return check_address(base)


def _key(row: Gateway, given: str | None) -> str | None:
    found = (os.environ.get(variable) for variable in row.key_vars)
    key = next(filter(None, found), None) if given is None else given
    key = check_key(row.name, key)
    if key is None and row.needs_key:
        raise missing_key(row.name, row.key_vars)
    return key


def _key_header(row: Gateway, key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if row.key_header == "authorization":
        return {"Authorization": f"Bearer {key}"}
    return {row.key_header: key}
