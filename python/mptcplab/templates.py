"""The text of a new scenario, with comments that say what can be changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mptcplab.errors import MptcplabError, with_hint

_HEAD = """\
# {question}
#
# Run it:       mptcplab run FILE
# Check it:     mptcplab check FILE
# Sweep a key:  mptcplab run FILE --sweep 'links.path1.loss=0.01 %..5 % log 7'
# Every key is described in docs/reference/scenario-format.md; `mptcplab schema` helps editors.

title = {title}
# Simulated time, and the part at its start that metrics ignore.
duration = {duration}
warmup = {warmup}
# Repetitions differ in their random numbers; intervals need several.
repetitions = {reps}
seed = 1
# Algorithms to compare; `mptcplab algorithms` lists them.
cc = [{cc}]
"""
_LINK = """\
{comment}[links.{name}]
from = "S"
to = "D"
rate = {rate}
delay = {delay}
{loss}queue = {queue}
"""
_FIRST_LINK = """\
# A link from S to D, and its reverse direction. Its round-trip time is twice the delay. A queue is written in packets,
# bytes, milliseconds, or BDP (rate times round-trip time).
"""
_FLOWS = """\
# The MPTCP connection, with a subflow per path. A path is a list of links.
[flows.mp]
paths = [{paths}]
"""
_TCP = """\
# TCP connections beside it. With a count they are one family: tcp-1, tcp-2, ...
[flows.tcp]
count = {count}
path = ["path1"]
cc = "cubic"
start = "uniform(0 s, 1 s)"
"""

# Where an error is in the text, and what is between two errors.
_PLACE = re.compile(r"^<[^>\n]*>:\d+:\d+: (?P<key>[\w.-]+): ")
_NEXT = "\n\nerror: "
# The arguments of keys that have other names.
_OF_LINKS = {"rate": "rates", "delay": "delays", "loss": "losses"}
_ARGUMENTS = {"repetitions": "reps", "flows.tcp.count": "tcp"}


def scenario(
    *,
    title: str,
    rates: Sequence[str],
    delays: Sequence[str],
    losses: Sequence[str],
    queue: str,
    cc: Sequence[str],
    tcp: int,
    duration: str,
    warmup: str,
    reps: int,
) -> str:
    """The text; where there are fewer delays or losses than rates, the last one is repeated."""
    if not rates:
        raise MptcplabError(with_hint("no rate", 'one for each path, such as "10 Mbit/s, 5 Mbit/s"'))
    if not delays:
        raise MptcplabError(with_hint("no delay", 'one for each path, such as "10 ms, 20 ms"'))
    for name, values in (("delays", delays), ("losses", losses)):
        if len(values) > len(rates):
            raise MptcplabError(
                with_hint(f"more {name} than rates: {', '.join(values)}", f"a path has one of each: {', '.join(rates)}")
            )
    names = [f"path{number}" for number in range(1, len(rates) + 1)]
    question = title if title.endswith("?") else f"{title}: which algorithm does best?"
    parts = [
        _HEAD.format(
            question=" ".join(question.split()),
            title=_quoted(" ".join(title.split())),
            duration=_quoted(duration),
            warmup=_quoted(warmup),
            reps=reps,
            cc=", ".join(map(_quoted, cc)),
        )
    ]
    for number, (name, rate) in enumerate(zip(names, rates, strict=True)):
        loss = losses[min(number, len(losses) - 1)] if losses else None
        parts.append(
            _LINK.format(
                comment=_FIRST_LINK if number == 0 else "",
                name=name,
                rate=_quoted(rate),
                delay=_quoted(delays[min(number, len(delays) - 1)]),
                loss=f"loss = {_quoted(loss)}\n" if loss else "",
                queue=_quoted(queue),
            )
        )
    parts.append(_FLOWS.format(paths=", ".join(f'["{name}"]' for name in names)))
    if tcp:
        parts.append(_TCP.format(count=tcp))
    return "\n".join(parts)


def default_delays(paths: int) -> list[str]:
    """The one-way delays of so many paths where none are given.

    >>> default_delays(3)
    ['10 ms', '20 ms', '30 ms']
    """
    return [f"{10 * number} ms" for number in range(1, paths + 1)]


def of_arguments(message: str) -> str:
    """An error about the text as one about the arguments from which it was made, each told once.

    >>> of_arguments('<two-paths>:23:8: links.path1.rate: "10" is not a rate')
    'rates: "10" is not a rate'
    """
    parts = [_PLACE.sub(lambda place: f"{_argument(place['key'])}: ", part) for part in message.split(_NEXT)]
    return _NEXT.join(dict.fromkeys(parts))


def _argument(key: str) -> str:
    """The argument from which a key of the text comes."""
    table, _, last = key.rpartition(".")
    if table.startswith("links."):
        return _OF_LINKS.get(last, last)
    return _ARGUMENTS.get(key, key)


def name_of(title: str) -> str:
    """The stem of a file for a title.

    >>> name_of("Two paths, one lossy?")
    'two-paths-one-lossy'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:48].strip("-") or "scenario"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
