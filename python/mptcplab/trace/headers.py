"""Sizes of headers, as in `crates/mptcplab-scenario/src/headers.rs`."""

from __future__ import annotations

# What the resolved scenario leaves out: the option has numbers of 32 bits.
SHORT = "short"
# The option of upstream Linux.
LINUX = "linux"

# By transport: IP 20 + TCP 20 + timestamps 12; IP 20 + SCTP 12 + DATA chunk 16.
_HEADER_BYTES = {"tcp": 52, "mptcp": 52, "cmt-sctp": 48, "udp": 0}
# The DSS option of MPTCP on data packets and on ACKs (RFC 8684, section 3.3), padded.
_DSS_BYTES = {SHORT: (20, 8), LINUX: (24, 12)}


def data_header_bytes(transport: str, dss: str = SHORT) -> int:
    """Bytes of a data packet before its payload."""
    return _HEADER_BYTES[transport] + (_DSS_BYTES[dss][0] if transport == "mptcp" else 0)


def ack_bytes(transport: str, dss: str = SHORT) -> int:
    """Bytes of an ACK of TCP or MPTCP without SACK blocks."""
    return _HEADER_BYTES[transport] + (_DSS_BYTES[dss][1] if transport == "mptcp" else 0)
