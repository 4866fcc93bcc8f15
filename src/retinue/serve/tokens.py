"""JSON Web Tokens, which somebody else signs: an owner and scopes for as long as they hold.

The token has no say in how it is checked: neither its `alg` nor its `kid` is looked at to find a
key, and nothing is fetched.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from retinue.errors import ConfigError, MissingExtraError
from retinue.serve.access import LONGEST, SCOPES, Caller, is_name, unknown
from retinue.serve.faults import log


class Tokens:
    """JSON Web Tokens that somebody else has signed. They must have an `exp` and an owner.

    Args:
        key: the secret, as long as its hash or longer (32 bytes for HS256); or the public key in
            PEM.
        algorithms: what may have signed them. The token has no say in it.
        issuer: what its `iss` must be, if given.
        audience: what its `aud` must hold, if given.
        owner: the claim that names the owner.
        scopes: the claim that lists scopes, as a list or with spaces; without it, `USUAL`.
        leeway: seconds that clocks may differ.

    Raises:
        ConfigError: a value cannot be used.
        MissingExtraError: PyJWT is not installed.
    """

    def __init__(
        self,
        key: str | bytes,
        *,
        algorithms: Sequence[str] = ("HS256",),
        issuer: str | None = None,
        audience: str | None = None,
        owner: str = "sub",
        scopes: str = "scope",
        leeway: float = 10.0,
    ) -> None:
        try:
            import jwt
        except ImportError as error:
            raise MissingExtraError(
                "Tokens need PyJWT; install it with: pip install 'retinue[serve]'"
            ) from error
        _check_algorithms(key, algorithms)
        self._jwt = jwt
        self._key = _prepared(key, algorithms)
        self._algorithms = list(algorithms)
        self._issuer = issuer
        self._audience = audience
        self._owner = owner
        self._scopes = scopes
        self._leeway = leeway

    def caller(self, credential: str | None) -> Caller:
        """See `Access.caller`."""
        if credential is None:
            raise unknown("give a key or token as `Authorization: Bearer ...`")
        if len(credential) > LONGEST or credential.count(".") != 2:
            raise unknown("the key or token is not known")
        jwt = self._jwt
        try:
            claims = jwt.decode(
                credential,
                self._key,
                algorithms=self._algorithms,
                issuer=self._issuer,
                audience=self._audience,
                leeway=self._leeway,
                options={"require": ["exp", self._owner]},
            )
        except jwt.ExpiredSignatureError:
            raise unknown("the token has expired") from None
        except (jwt.PyJWTError, ValueError, RecursionError, TypeError) as error:
            log.info("A token was refused: %s", error)  # its bearer is not told what to forge
            raise unknown("the token is not valid") from None
        return self._read(claims)

    def _read(self, claims: Mapping[str, Any]) -> Caller:
        owner: object = claims[self._owner]
        if not isinstance(owner, str) or not is_name(owner):
            raise unknown("the token names no owner")
        said: object = claims.get(self._scopes)
        if said is None:
            return Caller(owner)
        words = said.split() if isinstance(said, str) else said
        if not isinstance(words, list):
            raise unknown("the token's scopes cannot be read")
        given = frozenset(map(str, cast("list[object]", words)))
        return Caller(owner, frozenset(scope for scope in SCOPES if scope in given))


def _check_algorithms(key: str | bytes, algorithms: Sequence[str]) -> None:
    if not key or not algorithms or isinstance(algorithms, str):
        raise ConfigError("Tokens(...) needs a key, and the algorithms that may sign with it.")
    secret = {name for name in algorithms if name.upper().startswith("HS")}
    if "NONE" in {name.upper() for name in algorithms}:
        raise ConfigError("Tokens(algorithms=...) cannot hold 'none': anybody could write them.")
    if secret and len(secret) < len(algorithms):
        raise ConfigError(
            "Tokens(algorithms=...) mixes secrets with public keys: a public key would be taken"
            " for a secret. Choose one kind."
        )
    for name in secret:
        least = int(name[2:]) // 8 if name[2:].isdecimal() else 32
        length = len(key.encode() if isinstance(key, str) else key)
        if length < least:
            raise ConfigError(
                f"The secret of tokens has {length} bytes; give {least} or more for {name}."
            )


def _prepared(key: str | bytes, algorithms: Sequence[str]) -> Any:
    """The key in the form in which these algorithms take it.

    Raises:
        ConfigError: there is no such algorithm, or the key is none for it.
    """
    import jwt

    made: Any = None
    for name in algorithms:
        try:
            made = jwt.get_algorithm_by_name(name).prepare_key(key)
        except NotImplementedError:
            raise ConfigError(
                f"Tokens cannot be signed with {name!r}; name an algorithm such as HS256 or RS256."
            ) from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise ConfigError(
                f"The key of tokens is none for {name}: that takes"
                f" {'a secret' if name.startswith('HS') else 'a public key in PEM'}. Give another"
                " key, or name the algorithm that it is for."
            ) from None
        if hasattr(made, "sign"):
            raise ConfigError(
                "The key of tokens is private; give the public key that belongs to it."
            )
    return made
