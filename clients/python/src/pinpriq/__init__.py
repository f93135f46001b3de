"""Client and workers for pinpriq, the priority queue server.

`Client` and `Queue` put and take tasks, `AsyncClient` and `AsyncQueue` do so with asyncio, and
`Worker` runs functions for them.
"""

from . import commands
from .aio.batches import AsyncBatch
from .aio.client import AsyncClient
from .aio.job import AsyncJob
from .aio.queue import AsyncQueue
from .aio.schedules import AsyncSchedules
from .aio.subscription import AsyncSubscription
from .aio.topic import AsyncMember, AsyncTopic
from .aio.transaction import AsyncTransaction
from .errors import (
    Aborted,
    BadArgument,
    BadRequest,
    Busy,
    Cancelled,
    Closing,
    ClusterDown,
    CrossShard,
    Denied,
    Disconnected,
    Exists,
    Full,
    IdRequired,
    Moved,
    NoQueue,
    NotFound,
    NotOwner,
    NotTaken,
    Paused,
    PinpriqError,
    ReadOnly,
    Refused,
    SerialisationError,
    Stale,
    StoreFailed,
    Taken,
    TooLarge,
    TryAgain,
    Unknown,
    WrongState,
)
from .replies import (
    Attempt,
    Awaited,
    BatchShown,
    Changed,
    Explanation,
    Lease,
    MemberShown,
    Origin,
    Outcome,
    Page,
    Put,
    Reason,
    ScheduleShown,
    State,
    Stats,
)
from .requests.base import NO_PRIORITY, OWN
from .serialisers import Json, MsgPack, Raw, Serialiser
from .settings import QueueSettings, QueueShown
from .spans import Moment, Span
from .sync.batches import Batch
from .sync.client import Client
from .sync.job import Job
from .sync.queue import Queue
from .sync.schedules import Schedules
from .sync.subscription import Subscription
from .sync.topic import Member, Topic
from .sync.transaction import Transaction
from .task import Task
from .worker import Bury, Event, GiveBack, Retry, Worker

__version__ = "0.1.0"

__all__ = [
    "Attempt",
    "Aborted",
    "AsyncBatch",
    "AsyncClient",
    "AsyncJob",
    "AsyncMember",
    "AsyncQueue",
    "AsyncSchedules",
    "AsyncSubscription",
    "AsyncTopic",
    "AsyncTransaction",
    "Awaited",
    "BadArgument",
    "BadRequest",
    "Batch",
    "BatchShown",
    "Bury",
    "Busy",
    "Cancelled",
    "Client",
    "Closing",
    "ClusterDown",
    "CrossShard",
    "Denied",
    "Disconnected",
    "Event",
    "Exists",
    "Changed",
    "Explanation",
    "Full",
    "GiveBack",
    "IdRequired",
    "Job",
    "Json",
    "Lease",
    "Member",
    "MemberShown",
    "Moment",
    "Moved",
    "MsgPack",
    "NO_PRIORITY",
    "NoQueue",
    "NotFound",
    "NotOwner",
    "NotTaken",
    "OWN",
    "Origin",
    "Outcome",
    "Page",
    "Paused",
    "PinpriqError",
    "Put",
    "Queue",
    "QueueSettings",
    "QueueShown",
    "Raw",
    "ReadOnly",
    "Reason",
    "Refused",
    "Retry",
    "ScheduleShown",
    "Schedules",
    "SerialisationError",
    "Serialiser",
    "Span",
    "Stale",
    "State",
    "Stats",
    "StoreFailed",
    "Subscription",
    "Taken",
    "Task",
    "TooLarge",
    "Topic",
    "Transaction",
    "TryAgain",
    "Unknown",
    "Worker",
    "WrongState",
    "__version__",
    "commands",
]
