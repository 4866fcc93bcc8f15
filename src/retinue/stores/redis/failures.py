"""What Redis's errors mean: one sentence each, which names the place and the way out.

The server's errors begin with a word that says their kind; within a script some versions put it
further in. Texts of the server hold no password and nothing that is stored.
"""

import re
from typing import Final

from retinue.errors import StoreError
from retinue.stores import rules
from retinue.stores.redis.address import Address

_CLUSTER: Final = (
    "{place} is a node of a cluster, over which a conversation cannot be kept in one piece; give"
    " the URL of a server that holds all of its keys."
)
_FOREIGN: Final = (
    "{place} holds something else under the keys {prefix}…; remove it, or give this store another"
    " prefix."
)

_SAID: Final = (
    (
        "WRONGPASS|invalid password|invalid username-password|AUTH <password> called without",
        "{place} refused the password of user {user}; check both in the URL.",
    ),
    (
        "NOAUTH|Authentication required|unauthenticated",
        "{place} asks for a password; give it in the URL: redis://USER:PASSWORD@….",
    ),
    (
        "NOPERM|has no permissions|can't access at least one of the keys",
        "User {user} may not do this in {place} ({said}); grant the user (ACL SETUSER) the keys"
        " {prefix}* and the commands that its scripts need: +@read +@write +@scripting +time.",
    ),
    (
        "OOM|used memory > 'maxmemory'",
        "{place} has no memory left for this; raise its maxmemory, or delete or prune"
        " conversations.",
    ),
    (
        "READONLY|read only replica",
        "{place} is a replica, which may only be read; give the address of the primary server.",
    ),
    (
        "LOADING|loading the dataset",
        "{place} is starting and reads its data; try again in a moment.",
    ),
    ("MASTERDOWN", "{place} is a replica that has lost its primary; give the primary's address."),
    (
        "MISCONF",
        "{place} takes nothing more, as it cannot write its files; check the disk of the server.",
    ),
    (
        "NOREPLICAS",
        "{place} takes nothing without the replicas that it is to have; check these, or its"
        " min-replicas-to-write.",
    ),
    (
        "max number of clients",
        "{place} has no free connection; end others, or raise its maxclients.",
    ),
    ("WRONGTYPE|wrong kind of value", _FOREIGN),
    ("MOVED|CROSSSLOT|CLUSTERDOWN|cluster (node|mode|is down)|same slot", _CLUSTER),
    (
        "DB index is out of range|invalid DB index",
        "{place} is not there: the server has fewer databases; give a lower number in the URL.",
    ),
    (
        "BUSY",
        "{place} is kept busy by somebody's script; end it with SCRIPT KILL, and try again.",
    ),
    (
        "unknown command|Unknown Redis command|unknown subcommand",
        "{place} does not know a command that this store needs ({said}); Redis 6.2 or Valkey are"
        " the oldest that do.",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED|certificate",
        "The certificate of {place} does not hold ({said}); name its authority in the URL:"
        " ssl_ca_certs=FILE.",
    ),
    (
        "SSL",
        "{place} does not speak TLS, or not this version ({said}); check rediss:// and the port.",
    ),
    (
        r"^Error .*connecting to|^Timeout connecting|Name or service",
        "{place} cannot be reached ({said}); start the server, or check the network and the URL,"
        " which is rediss://… where TLS is spoken and only there.",
    ),
)
_LOST: Final = (
    "The connection to {place} was lost in the middle ({said}); check the server, the network and"
    " whether TLS is spoken there (rediss://…), and try again over a new one."
)
_SLOW: Final = (
    "{place} took longer than the {timeout:g} seconds that it may; check the server and the"
    " network, or give Redis a longer timeout."
)
_OTHER: Final = "{place} cannot be used, as Redis says: {said}."


class Failures:
    """Words the errors of one store.

    Args:
        address: where.
        prefix: what its keys begin with.
        timeout: seconds that a call may take.
    """

    def __init__(self, address: Address, prefix: str, timeout: float) -> None:
        self._address = address
        self._prefix = prefix
        self._timeout = timeout

    def explain(self, error: Exception) -> StoreError:
        """The sentence for an error of redis-py, of the server or of the way to it."""
        from redis.exceptions import ConnectionError, TimeoutError

        code = getattr(error, "status_code", None) or ""
        said = f"{code} {error}" if code else str(error)
        for pattern, sentence in _SAID:
            if re.search(pattern, said):
                return self._worded(sentence, str(error))
        if isinstance(error, TimeoutError):
            return self._worded(_SLOW)
        lost = isinstance(error, ConnectionError | OSError)
        return self._worded(_LOST if lost else _OTHER, str(error))

    def foreign(self) -> StoreError:
        """Our keys are somebody else's."""
        return self._worded(_FOREIGN)

    def newer(self) -> StoreError:
        """What is stored has a form that this version does not know."""
        return self._worded(
            "{place} was written by a later version of retinue under {prefix}…; install that"
            " version, or give another prefix."
        )

    def torn(self, conversation: str) -> StoreError:
        """A part of a conversation is gone, or is no message."""
        return self._worded(
            "Conversation {name} in {place} has lost a part or holds what is no message; delete it"
            " or restore the server from a backup, and see that its maxmemory-policy evicts no"
            " keys.",
            name=rules.quoted(conversation),
        )

    def lost(self, conversation: str) -> StoreError:
        """A writer whom nothing kept from others for a while."""
        return self._worded(
            "The hold on conversation {name} in {place} was lost while this turn wrote it: it could"
            " not be renewed in time, or the server forgot it; what was stored before is there, but"
            " look at what others may have stored in between.",
            name=rules.quoted(conversation),
        )

    def _worded(self, sentence: str, said: str = "", name: str = "") -> StoreError:
        # The place where a script stopped says nothing to its user.
        words = " ".join(said.partition(" script: ")[0].split()).rstrip(".")
        return StoreError(
            sentence.format(
                place=self._address,
                user=self._address.user,
                prefix=self._prefix,
                timeout=self._timeout,
                said=words,
                name=name,
            )
        )
