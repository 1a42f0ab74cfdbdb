"""Tables that exist only where they have rows."""

from __future__ import annotations

import json

import polars as pl

_TYPES = {"UInt8": pl.UInt8, "UInt32": pl.UInt32, "UInt64": pl.UInt64}


def without_rows(table: str) -> pl.LazyFrame:
    """A table that no engine wrote, with the columns that it would have."""
    from mptcplab import _core

    declared = json.loads(_core.trace_schema_json())["tables"]
    columns = next(one["columns"] for one in declared if one["name"] == table)
    # Everything that is no number is a name.
    return pl.LazyFrame(schema={one["name"]: _TYPES.get(one["type"], pl.Categorical) for one in columns})
