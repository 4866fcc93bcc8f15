"""Which proxy the environment names, and what of it can be seen. How it is used is in the contract
of models and in `test_sessions`.
"""

import base64

import pytest

from retinue.errors import ConfigError
from retinue.models.proxies import proxy_of

URL = "https://models.example/v1"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxies of whoever runs the tests do not count."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_without_one_there_is_none() -> None:
    assert proxy_of(URL) is None


@pytest.mark.parametrize("named", ["http://proxy.example:3128", "proxy.example:3128"])
def test_its_address_may_lack_the_scheme(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", named)
    proxy = proxy_of(URL)
    assert proxy is not None
    assert proxy.url == "http://proxy.example:3128"
    assert proxy.headers == {}


@pytest.mark.rule("R-FAIL-3")
def test_its_user_is_told_to_it_and_stands_in_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://ann:p%40ss:word@proxy.example:3128")
    proxy = proxy_of(URL)
    assert proxy is not None
    assert proxy.url == "http://proxy.example:3128"
    permit = proxy.headers["Proxy-Authorization"].removeprefix("Basic ")
    assert base64.b64decode(permit) == b"ann:p@ss:word"


@pytest.mark.parametrize("host", ["localhost", "api.localhost", "127.0.0.1", "[::1]:8000"])
def test_a_model_on_this_machine_is_asked_without_one(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert proxy_of(f"https://{host}/v1") is None


def test_a_host_that_is_excepted_is_asked_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "models.example")
    assert proxy_of(URL) is None


@pytest.mark.parametrize("named", ["http://[::1", "http://:3128", "ann:hush-hush@proxy:99999"])
def test_a_proxy_that_is_no_address_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", named)
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as caught:
        proxy_of(URL)
    assert "hush" not in str(caught.value)


def test_a_proxy_that_speaks_no_http_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://ann:hush-hush@proxy.example:1080")
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY.*socks5") as caught:
        proxy_of(URL)
    assert "hush" not in str(caught.value)
