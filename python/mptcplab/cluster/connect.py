"""Connects to a cluster of Dask, or starts one on this machine, and says which of its workers may take part."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mptcplab.capabilities import engine_of
from mptcplab.cluster import build
from mptcplab.cluster.urlstore import UrlStore
from mptcplab.errors import EngineError, MptcplabError, with_hint
from mptcplab.text import counted

if TYPE_CHECKING:
    from distributed import Client

# What public functions take: a client, or "dask", or "dask:ADDRESS".
ClientArg = Any
_NAME = "dask"
_SUCH_AS = "dask for a cluster on this machine, or dask:ADDRESS of a scheduler, such as dask:tcp://10.0.0.1:8786"
# With the protocol, which is TCP where none is given, and a port; or of a scheduler in this process, which has none.
_ADDRESS = re.compile(r"inproc://[^\s/]+/[^\s/]+/[^\s/]+|([a-z]+://)?[^\s/]+:\d{1,5}")
_CONNECT_S = 8
_LARGEST_PORT = 65535
_LOGS = ("distributed", "distributed.client", "asyncio")
# Time between two looks at who is there.
_LOOK_EVERY_S = 1.0
# An expression, because a worker of an older build has no function that could be called.
_ASK = "__import__('importlib').import_module('mptcplab.cluster.build').described()"


@dataclass
class Cluster:
    """A connected cluster. `say` gets lines about its workers; with `store`, results go there first."""

    client: Client
    say: Callable[[str], None]
    store: UrlStore | None = None
    # By address: the threads of workers of this build, and what is wrong with others.
    _threads: dict[str, int] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)
    _looked: float = -1.0
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def workers(self) -> Mapping[str, int]:
        """The threads of every worker that is there and has this build, by address."""
        with self._lock:
            if time.monotonic() - self._looked >= _LOOK_EVERY_S:
                self.look()
            return self._threads

    def wait(self) -> None:
        """Wait until there is a worker. Raises `EngineError` if all that are there have another build."""
        said = False
        while not self.workers():
            if self._refused:
                address, why = next(iter(self._refused.items()))
                hint = "install the same wheel in the environment of the workers, and restart them"
                raise EngineError(with_hint(f"no worker has this build: {address}: {why}", hint))
            if not said:
                self.say(f"waiting for workers of {self.address}")
                said = True
            time.sleep(_LOOK_EVERY_S / 4)
        threads = sum(self.workers().values())
        self.say(f"{counted(len(self.workers()), 'worker')} with {counted(threads, 'thread')} at {self.address}")

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return str(self.client.scheduler.address) if self.client.scheduler else "a scheduler that is gone"

    def lost(self, error: BaseException) -> EngineError:
        """The error when the scheduler cannot be reached any more."""
        reason = str(error) or type(error).__name__
        hint = "what is finished is kept: start the cluster again, then the same command goes on"
        return EngineError(with_hint(f"lost the scheduler at {self.address}: {reason}", hint))

    def look(self) -> None:
        """See which workers are there now. Raises `EngineError` if the scheduler cannot be reached."""
        try:
            there: dict[str, int] = dict(self.client.nthreads())
            new = [address for address in there if address not in self._threads and address not in self._refused]
            answers = self.client.run(eval, _ASK, workers=new, on_error="return") if new else {}
        except (OSError, TimeoutError) as error:
            raise self.lost(error) from error
        for address, answer in answers.items():
            why = _why_not(answer)
            # One that has gone meanwhile is no news.
            if why is not None and not isinstance(answer, OSError):
                self._refused[address] = why
                self.say(f"worker {address} gets no work: {why}")
        before = self._threads
        self._threads = {
            address: threads
            for address, threads in there.items()
            if address in before or (address in answers and _why_not(answers[address]) is None)
        }
        if before and not self._threads:
            self.say(f"no worker is left: waiting for workers of {self.address}")
        self._refused = {address: why for address, why in self._refused.items() if address in there}
        self._looked = time.monotonic()


def _why_not(answer: object) -> str | None:
    """Why a worker cannot take part; None if it can."""
    if isinstance(answer, ImportError | AttributeError):
        return f"no mptcplab of this build there: {answer}"
    if isinstance(answer, BaseException):
        return f"{type(answer).__name__}: {answer}"
    different = build.difference(json.loads(str(answer)))
    return None if different is None else f"another build: {different}"


@contextmanager
def connected(
    client: ClientArg,
    store: str | None,
    engines: Iterable[str],
    *,
    jobs: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Cluster | None]:
    """The cluster that a caller asks for, with a worker at least; None without `client`, which may be a cluster.

    `jobs` is the number of workers of a cluster on this machine. A cluster that was started here ends with the context.
    """
    if isinstance(client, Cluster):
        yield client
        return
    if client is None:
        if store is not None:
            hint = "add --on dask, or leave --store out"
            raise MptcplabError(with_hint(f"a store without a cluster that uses it: --store {store}", hint))
        yield None
        return
    for engine in engines:
        if engine_of(engine).has_sockets:
            hint = "run sim and fluid on the cluster, and the others without --on"
            raise MptcplabError(with_hint(f"the engine {engine} runs on this machine only, not on a cluster", hint))
    place = None if store is None else UrlStore.of(store)
    if place is not None:
        _require_dask()
        place.prepare()
    if isinstance(client, str):
        address = address_in(client)
        _require_dask()
        with _opened(address, jobs) as found:
            yield _ready(Cluster(found, say, place))
    else:
        if not hasattr(client, "submit") or not hasattr(client, "nthreads"):
            raise MptcplabError(with_hint(f"not a client of Dask: {client!r}", f"a distributed.Client, or {_SUCH_AS}"))
        yield _ready(Cluster(client, say, place))


def address_in(asked: str) -> str | None:
    """The scheduler's address in "dask:ADDRESS"; None for "dask".

    >>> address_in("dask"), address_in("dask:tcp://10.0.0.1:8786")
    (None, 'tcp://10.0.0.1:8786')
    """
    name, colon, address = asked.partition(":")
    if name != _NAME or (colon and not address):
        raise MptcplabError(with_hint(f"no such cluster: --on {asked!r}", _SUCH_AS))
    port = address.rpartition(":")[2]
    too_large = port.isdigit() and not 0 < int(port) <= _LARGEST_PORT
    if address and (too_large or not _ADDRESS.fullmatch(address)):
        raise MptcplabError(with_hint(f"not the address of a scheduler: --on {asked!r}", _SUCH_AS))
    return address or None


def _ready(cluster: Cluster) -> Cluster:
    cluster.wait()
    return cluster


@contextmanager
def _opened(address: str | None, jobs: int) -> Iterator[Client]:
    """A client; without an address of a cluster on this machine, with a process per job."""
    from distributed import Client, LocalCluster

    # What matters of their warnings is said here.
    for name in _LOGS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if address is None:
        with (
            LocalCluster(
                n_workers=jobs or os.cpu_count() or 1,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                preload=["mptcplab.cluster.local"],
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    # Not by the constructor alone: one that fails leaves an object whose destructor waits for a minute.
    client = Client.__new__(Client)
    try:
        _require_scheduler(address)
        client.__init__(address, timeout=_CONNECT_S, set_as_default=False)
    # Another program that listens there may send anything, which Dask takes for the sizes of what follows.
    except Exception as error:
        client.status = "closed"
        hint = (
            "start one with: dask scheduler, and workers with: dask worker ADDRESS; "
            "it prints its address, such as tcp://10.0.0.1:8786"
        )
        raise EngineError(with_hint(f"no scheduler of Dask at {address}: {_reason(error)}", hint)) from error
    with client:
        yield client


def _require_scheduler(address: str) -> None:
    """Raise an error of any kind unless a scheduler answers soon: a client waits for ever for what is silent."""
    if address.startswith("inproc:"):
        return
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> None:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as there:
            await there.identity()

    # A notebook has a loop in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(asyncio.wait_for(ask(), _CONNECT_S))).result()


def _reason(error: Exception) -> str:
    """Why there is no scheduler, in a line."""
    if isinstance(error, TimeoutError):
        return f"no answer within {_CONNECT_S} s"
    # It takes the first bytes of another protocol for a size.
    return "another program answers there" if isinstance(error, MemoryError) else str(error) or type(error).__name__


def _require_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        hint = "pip install 'mptcplab[dask]', here and in the environment of the workers"
        raise MptcplabError(with_hint(f"Dask is not installed: {error}", hint)) from error
