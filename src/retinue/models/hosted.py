"""What the models of all formats have in common: who they are, what they take, how they are left.

It asks nothing. How a request is written and an answer read is the business of each format.
"""

from typing import Generic

from retinue.models import transport
from retinue.models.capabilities import Declared
from retinue.models.endpoint import Endpoint


class Hosted(Generic[Declared]):
    """A model behind an address.

    Args:
        name: its name at its provider.
        provider: whose it is.
        capabilities: what it takes, as far as it is declared.
        endpoint: where it is asked.
    """

    def __init__(
        self, name: str, provider: str, capabilities: Declared, endpoint: Endpoint
    ) -> None:
        self._name = name
        self._provider = provider
        self._capabilities = capabilities
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        """The model's name at its provider."""
        return self._name

    @property
    def provider(self) -> str:
        """Whose it is: "anthropic", "gemini", or the name of the gateway."""
        return self._provider

    @property
    def capabilities(self) -> Declared:
        """What it takes, as far as it is declared."""
        return self._capabilities

    @property
    def url(self) -> str:
        """Where its requests go, if they ask for no stream."""
        return self._endpoint.url

    def __repr__(self) -> str:
        host = self._endpoint.peer.host
        kind = type(self).__name__
        return f"{kind}({self._name!r}, provider={self._provider!r}, host={host!r})"

    async def close(self) -> None:
        """Lets go of the running loop's connections, if no other model uses them."""
        await transport.close(self)
