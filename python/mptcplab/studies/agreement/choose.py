"""Which engines to compare where the caller does not say, and why these."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mptcplab import _core
from mptcplab.engines import kernel
from mptcplab.errors import EngineError, MptcplabError, with_hint

_SUCH_AS = "two or more, such as sim,kernel or sim,fluid"


def engines(asked: str | Iterable[str] | None) -> tuple[list[str], str | None]:
    """The engines, and why where nobody asked: the kernel where it can run, else the fluid, beside the simulator."""
    if asked is None:
        return _default()
    names = asked.split(",") if isinstance(asked, str) else list(asked)
    names = [name.strip() for name in names if name.strip()]
    if len(set(names)) < 2:
        raise MptcplabError(with_hint(f"nothing to compare with: engines {','.join(names)!r}", _SUCH_AS))
    return names, None


def refuse_early(scenario: str, overrides_json: str, engines: Iterable[str]) -> None:
    """Raise what the fluid refuses before the other engines have taken their time; the kernel says so at its start."""
    if "fluid" not in engines:
        return
    from mptcplab.engines.fluid.engine import refuse

    runs = json.loads(_core.runs_json(scenario, overrides_json))
    algorithms = {entry["name"]: entry for entry in json.loads(_core.algorithms_json())}
    refuse(scenario, overrides_json, runs, algorithms)


def _default() -> tuple[list[str], str]:
    try:
        kernel.require_available()
    except EngineError as error:
        reason = str(error).splitlines()[0]
        return ["sim", "fluid"], f"comparing sim and fluid, because kernel is out of reach: {reason}"
    return ["sim", "kernel"], "comparing sim and kernel, because kernel can run here"
