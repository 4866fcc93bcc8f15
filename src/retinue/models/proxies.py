"""The proxy that the environment names for an address: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`."""

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from retinue.errors import ConfigError


class Proxy(Struct, frozen=True):
    """A proxy.

    Attributes:
        url: its address, without a user: errors and connections show it.
        headers: what it wants to see of the user, if there is one.
    """

    url: str
    headers: Mapping[str, str]


def proxy_of(url: str) -> Proxy | None:
    """The proxy for this URL, or None if there is none.

    A model on this machine is never asked through a proxy: it could not reach it.

    Raises:
        ConfigError: what the environment names is no address, or of a proxy that speaks no HTTP.
    """
    parts = urlsplit(url)
    if _is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    named = getproxies().get(parts.scheme)
    if not named:
        return None
    variable = f"{parts.scheme.upper()}_PROXY"
    proxy = _parts_of(named if "://" in named else f"http://{named}")
    if proxy is None:
        raise ConfigError(
            f"The proxy in {variable} is no address; it must look like http://host:3128. Change it,"
            " or add the host to NO_PROXY."
        )
    if proxy.scheme not in ("http", "https"):
        raise ConfigError(
            f"The proxy in {variable} must be an http:// address, not {proxy.scheme}://. Change it,"
            " or add the host to NO_PROXY."
        )
    user, _, host = proxy.netloc.rpartition("@")
    if not user:
        return Proxy(f"{proxy.scheme}://{host}", {})
    permit = base64.b64encode(unquote(user).encode()).decode()
    return Proxy(f"{proxy.scheme}://{host}", {"Proxy-Authorization": f"Basic {permit}"})


def _parts_of(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:  # a port that is no number, a bracket that is not closed
        return None


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
