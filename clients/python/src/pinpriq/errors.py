"""The exceptions of this package.

Every exception derives from `PinpriqError`. A refusal is a correct reply that says no: nothing
has changed on the server. `Disconnected` means that there was no reply.
"""

from __future__ import annotations

from typing import ClassVar

from redis import exceptions as redis_errors

#: The first word of refusals whose text redis-py strips of it, by the class of its exception.
_STRIPPED: tuple[tuple[type[Exception], str], ...] = (
    (redis_errors.ExecAbortError, "EXECABORT"),
    (redis_errors.TryAgainError, "TRYAGAIN"),
    (redis_errors.ClusterDownError, "CLUSTERDOWN"),
    (redis_errors.ClusterCrossSlotError, "CROSSSLOT"),
    (redis_errors.MovedError, "MOVED"),
    (redis_errors.NoPermissionError, "NOPERM"),
    (redis_errors.ReadOnlyError, "READONLY"),
    (redis_errors.AuthenticationError, "NOAUTH"),
)


class PinpriqError(Exception):
    """The base of all exceptions of this package."""


class Disconnected(PinpriqError):
    """There was no reply: the connection could not be made, broke, or was silent for too long.

    A request that is safe to repeat was sent again for `retry_for` seconds before.
    """


class SerialisationError(PinpriqError):
    """A payload could not be turned into bytes, or bytes not into a value."""


class Refused(PinpriqError):
    """The server refused a request, and nothing has changed.

    `kind` is the first word of the refusal, such as `FULL`. `message` is the sentence after it.
    `repeated` tells whether the request was sent more than once. Then an earlier one may have
    been carried out although its reply was lost.
    """

    #: The classes of refusals, by their first words.
    by_word: ClassVar[dict[str, type[Refused]]] = {}

    def __init_subclass__(cls, words: str = "") -> None:
        cls.by_word.update(dict.fromkeys(words.split(), cls))

    def __init__(self, kind: str, message: str, repeated: bool = False) -> None:
        super().__init__(f"{kind} {message}")
        self.kind = kind
        self.message = message
        self.repeated = repeated

    def __reduce__(self) -> tuple[object, ...]:
        return (refusal, (self.kind, self.message, self.repeated))


class BadArgument(Refused, words="BADARG"):
    """`BADARG`: an argument makes no sense."""


class BadRequest(Refused, words="ERR"):
    """`ERR`: an unknown command, a wrong number of arguments, and the like."""


class NoQueue(Refused, words="NOQUEUE"):
    """`NOQUEUE`: there is no such queue."""


class NotFound(Refused, words="NOTFOUND"):
    """`NOTFOUND`: there is no such task, member, lane or schedule."""


class Exists(Refused, words="EXISTS"):
    """`EXISTS`: the queue was created already, or has a task with that id or unique key."""


class IdRequired(Refused, words="IDREQUIRED"):
    """`IDREQUIRED`: the queue requires an id for each task."""


class NotTaken(Refused, words="NOTTAKEN"):
    """`NOTTAKEN`: the task is not taken."""


class NotOwner(Refused, words="NOTOWNER"):
    """`NOTOWNER`: another connection has taken the task."""


class Stale(Refused, words="STALE"):
    """`STALE`: the receipt is not that of a current lease. Drop the work."""


class Cancelled(Refused, words="CANCELLED"):
    """`CANCELLED`: the task was cancelled, so its lease is not renewed. End the work."""

    @property
    def reason(self) -> str:
        """Why it was cancelled, perhaps empty."""
        return "" if self.message == "without a reason" else self.message


class Taken(Refused, words="TAKEN"):
    """`TAKEN`: the task is taken."""


class WrongState(Refused, words="WRONGSTATE"):
    """`WRONGSTATE`: the state or the setting does not allow it."""


class TooLarge(Refused, words="TOOLARGE"):
    """`TOOLARGE`: a payload, an argument or a request is too long."""


class Full(Refused, words="FULL"):
    """`FULL`: the queue is at its capacity. Try later, or wait with `room`."""


class Paused(Refused, words="PAUSED"):
    """`PAUSED`: the queue is paused for puts."""


class Busy(Refused, words="BUSY"):
    """`BUSY`: a bound of the server is reached, or the disk is nearly full."""


class CrossShard(Refused, words="CROSSSHARD CROSSSLOT"):
    """`CROSSSHARD` or `CROSSSLOT`: the names of one request live in different shards."""


class Aborted(Refused, words="EXECABORT"):
    """`EXECABORT`: a command of a transaction was refused, so nothing of it has happened.

    `position` counts from 1, and `cause` is the refusal of that command. Both are None if the
    server saw at once that the transaction is wrong.
    """

    position: int | None = None
    cause: Refused | None = None


class Closing(Refused, words="CLOSING"):
    """`CLOSING`: the server stops, and can wait no longer for the end of a task."""


class TryAgain(Refused, words="TRYAGAIN"):
    """`TRYAGAIN`: the owner of the shard is changing. The request was not carried out.

    Of what all shards are asked for, some may have carried out their part: it can be sent again.
    """


class ClusterDown(Refused, words="CLUSTERDOWN"):
    """`CLUSTERDOWN`: the engine under the cluster is silent. The request was not carried out.

    Of what all shards are asked for, some may have carried out their part: it can be sent again.
    """


class Unknown(Refused, words="UNKNOWN"):
    """`UNKNOWN`: the request was carried out or not. Only a cluster says so."""


class Moved(Refused, words="MOVED"):
    """`MOVED`: another node has the queue. Only the door for cluster clients says so."""


class Denied(Refused, words="NOAUTH WRONGPASS NOPERM"):
    """`NOAUTH`, `WRONGPASS` or `NOPERM`: who asks may not do this."""


class ReadOnly(Refused, words="READONLY"):
    """`READONLY`: the server only shows a moment, and nothing can be changed."""


class StoreFailed(Refused, words="STORE"):
    """`STORE`: the disk failed, and nothing can be changed."""


#: What an acknowledgement with a result is refused with if the same one without could be granted:
#: it is too large, there is no room for it, or the server is too old.
RESULT_REFUSED = (TooLarge, Busy, BadArgument, BadRequest)


def refusal(kind: str, message: str, repeated: bool = False) -> Refused:
    """Return the exception for a refusal. An unknown kind is a plain `Refused`."""
    refused = Refused.by_word.get(kind, Refused)(kind, message, repeated)
    if isinstance(refused, Aborted):
        position, _, cause = message.partition(" ")
        if position.isdecimal():
            inner_kind, _, inner_message = cause.partition(" ")
            refused.position = int(position)
            refused.cause = refusal(inner_kind, inner_message, repeated)
    return refused


def is_refusal(error: BaseException) -> bool:
    """Tell whether an exception of redis-py stands for an error reply of the server."""
    return isinstance(error, redis_errors.ResponseError | redis_errors.AuthenticationError)


def refusal_from(error: Exception, repeated: bool = False) -> Refused:
    """Turn an error reply, as redis-py raises it, into a refusal."""
    text = str(error)
    kind = getattr(error, "status_code", None)
    if kind is None:
        for stripped, word in _STRIPPED:
            if isinstance(error, stripped):
                kind = word
                break
    if kind is None:
        first, _, rest = text.partition(" ")
        if first.isupper() and first.isalpha():
            kind, text = first, rest
        else:
            kind = "ERR"
    return refusal(str(kind), text, repeated)
