"""Matplotlib figures that look alike. Sizes are in inches, so that text has the same size in all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mptcplab.output import whole
from mptcplab.plots.styles import INK, SOFT, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_RC: dict[str, Any] = {
    "svg.hashsalt": "mptcplab",
    "svg.fonttype": "none",
    # Matplotlib's own font; an SVG would repeat the list of all fallback fonts at every text.
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "figure.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "hatch.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # Where a title stands anyway: otherwise Matplotlib measures all ticks of its axes to find that out.
    "axes.titley": 1.0,
    "path.simplify_threshold": 0.5,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
_overriding: ContextVar[dict[str, Any]] = ContextVar("overriding", default={})  # noqa: B039 (never changed)
# The same bytes for the same data: no date, fixed ids.
METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
# The files that a figure becomes where nobody says which.
KINDS = ("png", "svg")
# The widest figure that a page shows at full size, the width of a letter of the usual size, which is enough for most
# bold texts, and the margins.
WIDEST, _LETTER = 9.6, 0.078
LEFT, RIGHT = 0.86, 0.14
# The height of a legend of one row, and how far its rows are apart (in sizes of its text).
_LEGEND, _ROWS_APART = 0.3, 1.55
# The distance of the lines of one text, and of notes, which are smaller (points).
LINE, NOTE, _NOTE_SIZE = 0.16, 0.24, 8.0
# A number in a note has no decimals from here on, and one at a tick.
_WHOLE, _ALL_WHOLE = 100, 1000
# A space at which no line ends.
_HELD = "\N{NO-BREAK SPACE}"
# The handle of an entry of a legend with what is around it, the usual length of the handle (in sizes of its text), and
# the width of its line (points).
_HANDLE, _USUAL_HANDLE, LEGEND_LINE = 0.55, 2.0, 1.4
_POINTS_PER_INCH = 72
# A value to compare with: what a paper prints, or the fair share.
REFERENCE_MARK: dict[str, Any] = {"marker": "D", "markersize": 6, "markerfacecolor": "none", "linestyle": "none"}
REFERENCE_LINE: dict[str, Any] = {"color": INK, "linewidth": 0.9, "linestyle": (0, (5, 3))}
# A range of values that a band shades, and what lies outside of a measurement.
BAND: dict[str, Any] = {"color": SOFT, "alpha": 0.18, "linewidth": 0}


def styled(draw: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function that draws or saves, with the style that all figures share."""

    @wraps(draw)
    def drawn(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        import matplotlib as mpl

        # Matplotlib's types name every parameter; these are some of them.
        rc: Any = {**_RC, **_overriding.get()}
        with mpl.rc_context(rc):
            return draw(*args, **kwargs)

    return drawn


@contextmanager
def sized(font_pt: float | None) -> Iterator[None]:
    """Figures that are drawn meanwhile have text of this size; None leaves it as it is."""
    sizes = {} if font_pt is None else {key: font_pt for key, value in _RC.items() if key.endswith("size")}
    before = _overriding.set(sizes)
    try:
        yield
    finally:
        _overriding.reset(before)


@styled
def save(figure: Figure, stem: Path, kinds: Sequence[str] = ("png",)) -> list[Path]:
    """Write a figure as files of the given kinds ("png", "svg"); return their paths."""
    paths = []
    for kind in kinds:
        path = stem.with_suffix(f".{kind}")
        with whole(path) as partial:
            figure.savefig(partial, format=kind, dpi=150, metadata=METADATA[kind])
        paths.append(path)
    return paths


def constrained(width: float, height: float) -> Figure:
    """An empty figure whose layout Matplotlib decides; sizes are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def text_width(text: str) -> float:
    """The approximate width of a text in inches."""
    return _letter() * max(map(len, text.split("\n")))


def broken(text: str, inches: float) -> str:
    """A text over several lines, none of which is wider than that.

    A number stays with its unit. If there is room, a parameter stays with its value; a word that is wider than a line
    is broken at its points.

    >>> print(broken("olia, flows.mp.rcv_buffer = 256 kB", 1.2))
    olia,
    flows.mp.
    rcv_buffer
    = 256 kB
    """
    most = max(4, int(inches / _letter()))
    if max(map(len, text.split("\n"))) <= most:
        return text
    kept = re.sub(r" (?==)|(?<=[=·]) |(?<=\d) (?=[^\W\d]|[%/])", _HELD, text)
    lines = _wrapped(kept.split("\n"), most, _Words)
    lines = _wrapped([line.replace(f"{_HELD}=", " =") if len(line) > most else line for line in lines], most, _Words)
    return "\n".join(_wrapped(lines, most, _Parts)).replace(_HELD, " ")


def _wrapped(lines: Iterable[str], most: int, how: type[TextWrapper]) -> list[str]:
    """The lines, those with too many letters as several."""
    parts = (how(most).wrap(line) if len(line) > most else [line] for line in lines)
    return [part for some in parts for part in some]


def note_lines(notes: Iterable[str], width: float) -> list[str]:
    """The lines of notes below a figure of that width."""
    in_usual_letters = (width - 0.1) * float(_RC["font.size"]) / _NOTE_SIZE
    with sized(None):
        return [line for note in notes for line in broken(note, in_usual_letters).split("\n")]


def about(value: float) -> str:
    """A number for a note: whole, or with three digits where it is small.

    >>> about(1030.4), about(-99.96), about(1.0451)
    ('1,030', '-100', '1.05')
    """
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.3g}"


def tick_text(value: float) -> str:
    """A number for a tick: all digits before the point, at least four in all, and never a power of ten.

    >>> tick_text(50_000.0), tick_text(12_345.0), tick_text(0.04731), tick_text(0.00002)
    ('50000', '12345', '0.04731', '0.00002')
    """
    import numpy as np

    if abs(value) >= _ALL_WHOLE:
        return f"{value:.0f}"
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def intervals_beyond(low: float, top: float, ends: Sequence[float], unit: str) -> str | None:
    """A note on 95 % intervals with these ends that leave an axis; None if they do not.

    An interval of a quantity that is never negative may reach below zero, which is no value of the quantity.

    >>> intervals_beyond(0.0, 0.4, [-0.55, 0.2, 1.05], "ms")
    '95 % intervals reach beyond the axis: up to 1.05 ms'
    >>> intervals_beyond(0.0, 1.2, [-0.55, 0.2, 1.05], "ms")
    """
    beyond = [f"down to {about(min(ends))}"] if low < 0 and min(ends) < low else []
    beyond += [f"up to {about(max(ends))}"] if max(ends) > top else []
    return f"95 % intervals reach beyond the axis: {' and '.join(beyond)} {unit}".strip() if beyond else None


class _Words(TextWrapper):
    """Breaks a text at its spaces."""

    def __init__(self, most: int) -> None:
        super().__init__(most, break_long_words=False, break_on_hyphens=False)


class _Parts(TextWrapper):
    """Breaks a word behind points and brackets."""

    wordsep_re = re.compile(r"( +|(?<=[.(])(?=\w))")


def lines_in(text: str) -> int:
    """The number of lines of a text."""
    return 1 + text.count("\n")


def _letter() -> float:
    return _LETTER * _size_of("font.size") / float(_RC["font.size"])


def _size_of(what: str) -> float:
    """The size of texts of a kind in the figures that are drawn now, points."""
    return float(_overriding.get().get(what, _RC[what]))


def grid(axes: Axes, axis: str) -> None:
    """Faint lines behind the data."""
    axes.set_axisbelow(True)
    axes.grid(axis=axis, color=SOFT, alpha=0.25, linewidth=0.6)  # type: ignore[arg-type]


def hatch(style: Style) -> str:
    """Twice as dense as usual, for narrow bars; not of dots, each of which is a shape of its own in SVG."""
    return style.hatch if style.hatch == "." else style.hatch * 2


def filled(make: Callable[..., Any], colour: str, pattern: str) -> tuple[Any, Any]:
    """A tinted area and its outline with a hatch: one patch would make its hatch as transparent as the tint in SVG."""
    tint = make(facecolor=colour + "59", edgecolor="none", linewidth=0)
    return tint, make(facecolor="none", edgecolor=colour, linewidth=1.1, hatch=pattern)


def filled_handle(colour: str, pattern: str) -> tuple[Any, Any]:
    """The entry of a legend for bars."""
    from matplotlib.patches import Patch

    return filled(Patch, colour, pattern)


def line_handle(**look: Any) -> Any:
    """The entry of a legend for lines or markers."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


class Canvas:
    """A figure that is measured in inches from its upper left corner, below a legend over the whole width.

    `looks` are the styles of the lines in the legend, whose handles are long enough to show the dashes.
    """

    def __init__(
        self, width: float, height: float, handles: Sequence[tuple[Any, str]] = (), looks: Iterable[Style] = ()
    ) -> None:
        from matplotlib.figure import Figure

        letters = _size_of("legend.fontsize")
        length = max(_USUAL_HANDLE, max((LEGEND_LINE * look.shown for look in looks), default=0.0) / letters)
        handle = _HANDLE + (length - _USUAL_HANDLE) * letters / _POINTS_PER_INCH
        labels = [broken(label, width - 0.1 - handle) for _, label in handles]
        longest = handle + max((text_width(label) for label in labels), default=0.0)
        columns = max(1, min(len(handles), int((width - 0.1) / longest)))
        # A label of several lines is as wide as the figure, so that it stands alone.
        more = LINE * sum(lines_in(label) - 1 for label in labels)
        rows = -(-len(handles) // columns)
        apart = _ROWS_APART * letters / _POINTS_PER_INCH
        self._top = _LEGEND + (rows - 1) * apart + more if handles else 0.0
        self._width, self._height = width, self._top + height
        self.figure = Figure(figsize=(self._width, self._height))
        if handles:
            self.figure.legend(
                [handle for handle, _ in handles],
                labels,
                loc="upper left",
                bbox_to_anchor=(0.0, 1.0 - 0.02 / self._height),
                ncols=columns,
                handlelength=length,
                borderaxespad=0.2,
                borderpad=0,
            )

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """New axes at a place below the legend."""
        bottom = self._height - self._top - top - height
        return self.figure.add_axes(
            (left / self._width, bottom / self._height, width / self._width, height / self._height)
        )

    def write_notes(self, lines: Sequence[str]) -> None:
        """Lines at the lower edge, for which the height has `NOTE` each."""
        for below, line in zip(reversed(range(len(lines))), lines, strict=True):
            self.figure.text(0.01, (below + 0.3) * NOTE / self._height, line, color=SOFT, fontsize=_NOTE_SIZE)
