"""Makes a network that violates a property smaller, step by step, while it still does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mptcplab.studies.hunt.network import ACCESS, COMPETITORS, Change, Network, rounded

# Whether a network still violates the property enough.
Keeps = Callable[[Network], bool]
# Of numbers in the file, where they need not be exact.
_DIGITS = 1
# A thing is as much as so many digits.
_THING = 100
_KEYS = ("rate_mbps", "delay_ms", "queue_pkts")


def shrunk(network: Network, keeps: Keeps) -> Network:
    """The network without everything that can be left out."""
    smaller = True
    while smaller:
        smaller = False
        # A step that was taken changes what the following ones start from.
        for step in _STEPS:
            for candidate in step(network):
                if size(candidate) < size(network) and keeps(candidate):
                    network, smaller = candidate, True
                    break
    return network


def size(network: Network) -> int:
    """How much there is to read: the things in a network, and the digits of the numbers that it does not repeat."""
    links = list(network.links.values())
    seldom = sum(bool(one.loss_percent) for one in links) + bool(network.start_s) + bool(network.others_start_s)
    things = len(links) + seldom + (network.change is not None) + (network.competitor != COMPETITORS[0])
    others = sum(link.others for link in links)
    numbers = [one.loss_percent for one in links] + ([] if network.change is None else [network.change.factor])
    for before, link in zip([None, *links], links, strict=False):
        numbers += [getattr(link, key) for key in _KEYS if before is None or getattr(before, key) != getattr(link, key)]
    return _THING * (things + others) + sum(_digits(number) for number in numbers)


def _digits(number: float) -> int:
    """The significant digits of a number.

    >>> _digits(300.0), _digits(0.25)
    (1, 2)
    """
    return len(f"{number:.6g}".replace(".", "").strip("0"))


def _without_change(network: Network) -> Iterator[Network]:
    if network.change is not None:
        yield replace(network, change=None)


def _without_others(network: Network) -> Iterator[Network]:
    """First all connections of a link, then all but one."""
    for name, link in network.links.items():
        yield from (network.with_link(name, others=count) for count in (0, 1) if count < link.others)


def _without_loss(network: Network) -> Iterator[Network]:
    for name, link in network.links.items():
        if link.loss_percent:
            yield network.with_link(name, loss_percent=0.0)


def _without_access(network: Network) -> Iterator[Network]:
    """Two links instead of three, where nobody else needs the first."""
    if ACCESS in network.links and not network.links[ACCESS].others:
        yield replace(network, links={name: link for name, link in network.links.items() if name != ACCESS})


def _at_once(network: Network) -> Iterator[Network]:
    if network.start_s or network.others_start_s:
        yield replace(network, start_s=0.0, others_start_s=0.0)
    if network.start_s:
        yield replace(network, start_s=0.0)
    if network.others_start_s:
        yield replace(network, others_start_s=0.0)


def _plain(network: Network) -> Iterator[Network]:
    if network.competitor != "reno":
        yield replace(network, competitor="reno")


def _alike(network: Network) -> Iterator[Network]:
    """Links with the same numbers."""
    first, second = list(network.links)[-2:]
    for key in _KEYS:
        value = getattr(network.links[first], key)
        if getattr(network.links[second], key) != value:
            yield network.with_link(second, **{key: value})


def _round(network: Network) -> Iterator[Network]:
    """One digit instead of two, in all links with the same number."""
    for key in (*_KEYS, "loss_percent"):
        for value in dict.fromkeys(getattr(link, key) for link in network.links.values()):
            smaller = network
            for name, link in network.links.items():
                if getattr(link, key) == value:
                    smaller = smaller.with_link(name, **{key: rounded(value, _DIGITS)})
            yield smaller
    change = network.change
    if change is not None and rounded(change.factor, _DIGITS) != change.factor:
        yield replace(network, change=Change(change.link, change.key, rounded(change.factor, _DIGITS)))


_STEPS = (_without_change, _without_others, _without_loss, _without_access, _at_once, _plain, _alike, _round)
