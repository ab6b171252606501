"""Draw the pictures of docs/design.md.

    python dev/draw_design.py            writes docs/images/*.svg
    python dev/draw_design.py --check    fails if a file there differs from what would be written

The ranks of the modules are those of dev/check_layers.py. A picture is refused if a text is wider than its box or if
two boxes overlap.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from check_layers import PYTHON_RANK, RANK

ROOT = Path(__file__).resolve().parents[1]
#: Entry points, which import everything; and the shapes of dicts that `_core` takes, which are part of it.
_UNDRAWN = {"", "__main__", "_core_types"}
IMAGES = ROOT / "docs" / "images"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
INK, QUIET, LINE = "#1f2328", "#57606a", "#8c959f"
FILL = {
    "panel": "#f6f8fa",
    "public": "#b6e3ff",
    "private": "#e7f4fd",
    "rust": "#ffe2c7",
    "boundary": "#ffd33d",
    "stage": "#e7f4fd",
    "store": "#eaeef2",
    "good": "#dafbe1",
    "bad": "#ffebe9",
}
# Widths of a character in units of the font size: all of a monospaced font, and the average of a wide sans serif one.
MONO_WIDTH, SANS_WIDTH, BOLD_WIDTH = 0.605, 0.58, 0.66
PAD = 10


def width_of(text: str, size: float, style: str) -> float:
    """Return an upper estimate of a text's width."""
    return len(text) * size * {"mono": MONO_WIDTH, "sans": SANS_WIDTH, "bold": BOLD_WIDTH}[style]


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The x of the right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of the lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> tuple[float, float]:
        """The point in the middle."""
        return self.x + self.width / 2, self.y + self.height / 2

    def overlaps(self, other: Box) -> bool:
        """Whether two boxes share an area."""
        apart = self.right <= other.x or other.right <= self.x
        return not (apart or self.bottom <= other.y or other.bottom <= self.y)


class Picture:
    """An SVG picture on a white panel, which is legible on light and dark pages."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.size = (width, height)
        self.boxes: list[Box] = []
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5"',
            'markerWidth="7" markerHeight="7" orient="auto">',
            f'<path d="M0 1 L10 5 L0 9 z" fill="{QUIET}"/></marker></defs>',
            f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="#fff" stroke="{LINE}"/>',
        ]

    def text(self, x: float, y: float, text: str, size: float = 13, style: str = "sans", anchor: str = "start") -> None:
        """Write one line of which y is the base line."""
        if not text:
            return
        width = width_of(text, size, style)
        left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
        if left < 0 or left + width > self.size[0]:
            sys.exit(f"outside of the picture: {text}")
        weight = ' font-weight="600"' if style == "bold" else ""
        colour = QUIET if style == "sans" and size <= 12 else INK  # noqa: PLR2004
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{MONO if style == "mono" else SANS}" font-size="{size:g}" '
            f'fill="{colour}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
        )

    def panel(self, box: Box, title: str) -> None:
        """Draw a background with a title, in which boxes may be placed."""
        self._rectangle(box, "panel")
        self.text(box.x + 14, box.y + 26, title, 15, "bold")

    def box(self, box: Box, fill: str, title: str, lines: tuple[str, ...] = (), code: str = "") -> Box:
        """Draw a box with a title, code at the right of it, and lines below."""
        for other in self.boxes:
            if box.overlaps(other):
                sys.exit(f"overlaps another box: {title}")
        widths = [width_of(line, 12, "sans") for line in lines]
        widths.append(width_of(title, 14, "bold") + (width_of(code, 12, "mono") + PAD if code else 0))
        if max(widths) > box.width - 2 * PAD or 24 + 17 * len(lines) > box.height:
            sys.exit(f"too small for its text ({max(widths):.0f}): {title}")
        self.boxes.append(box)
        self._rectangle(box, fill)
        self.text(box.x + PAD, box.y + 20, title, 14, "bold")
        if code:
            self.text(box.right - PAD, box.y + 20, code, 12, "mono", "end")
        for number, line in enumerate(lines):
            self.text(box.x + PAD, box.y + 39 + 17 * number, line, 12)
        return box

    def place(self, x: float, y: float, title: str, *lines: str, fill: str = "stage", code: str = "") -> Box:
        """Draw a box as wide as the column of draw_write_path that begins at x."""
        width = {20: 190, 260: 400 if code else 190, 490: 170, 720: 235}[round(x)]
        return self.box(Box(x, y, width, 32 + 17 * len(lines)), fill, title, lines, code)

    def name(self, x: float, y: float, fill: str, name: str) -> Box:
        """Draw the name of a module in a box as wide as it."""
        box = Box(x, y, round(width_of(name, 13, "mono") + 12), 26)
        self.boxes.append(box)
        self._rectangle(box, fill)
        self.text(box.middle[0], box.y + 18, name, 13, "mono", "middle")
        return box

    def arrow(self, *points: tuple[float, float], label: str = "", at: tuple[float, float] = (0, 0)) -> None:
        """Draw an arrow through points, and its label at a place."""
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(
            f'<path d="M{path}" fill="none" stroke="{QUIET}" stroke-width="1.5" marker-end="url(#head)"/>'
        )
        if label:
            self.text(*at, label, 12)

    def _rectangle(self, box: Box, fill: str) -> None:
        if box.x < 0 or box.y < 0 or box.right > self.size[0] or box.bottom > self.size[1]:
            sys.exit(f"outside of the picture: {box}")
        self.parts.append(
            f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="6" '
            f'fill="{FILL[fill]}" stroke="{LINE}"/>'
        )

    def svg(self) -> str:
        """Return the picture as the text of a file."""
        return "\n".join([*self.parts, "</svg>", ""])


def rust_ranks() -> dict[int, list[str]]:
    """Return the modules of src by rank."""
    ranks: dict[int, list[str]] = {}
    for module, rank in RANK.items():
        if (ROOT / "src" / module).is_dir() or (ROOT / "src" / f"{module}.rs").is_file():
            ranks.setdefault(rank, []).append(module)
    return ranks


def python_ranks() -> dict[int, list[str]]:
    """Return the modules of the Python package by rank, the parts of `spark` and the entry points left out."""
    ranks: dict[int, list[str]] = {}
    for module, rank in (PYTHON_RANK | {"spark": PYTHON_RANK["cli"]}).items():
        if "." not in module and module not in _UNDRAWN:
            ranks.setdefault(rank, []).append(module)
    return ranks


def spark_ranks() -> list[list[str]]:
    """Return the parts of the package spark, the highest rank first."""
    ranks: dict[int, list[str]] = {}
    for module, rank in PYTHON_RANK.items():
        if module.startswith("spark."):
            ranks.setdefault(rank, []).append(module.removeprefix("spark."))
    return [ranks[rank] for rank in sorted(ranks, reverse=True)]


PITCH, FIRST_ROW = 33, 46


def draw_ranks() -> str:
    """Draw the ranks of the modules of both halves."""
    rust, python, spark = rust_ranks(), python_ranks(), spark_ranks()
    heights = [FIRST_ROW + len(ranks) * PITCH + 4 for ranks in (spark, python, rust)]
    picture = Picture(1000, max(heights) + 32, "Ranks of the Python and Rust modules")
    panels = Box(16, 16, 208, heights[0]), Box(240, 16, 486, heights[1]), Box(758, 16, 226, heights[2])
    for panel, title in zip(panels, ("spark", "python/deltafast", "src"), strict=True):
        picture.panel(panel, title)
    _draw_rows(picture, panels[0], [("", names) for names in spark])
    core = _draw_rows(picture, panels[1], [(str(rank), python[rank]) for rank in sorted(python, reverse=True)])["_core"]
    rust_rows = [(str(rank), rust[rank]) for rank in sorted(rust, reverse=True)]
    extension = _draw_rows(picture, panels[2], rust_rows, "rust")["py"]
    bend = (panels[1].right + panels[2].x) / 2
    start, end = (core.right, core.middle[1]), (panels[2].x, extension.middle[1])
    picture.arrow(start, (bend, start[1]), (bend, end[1]), end)
    x, y = 16.0, picture.size[1] - 96
    for fill, name in (("public", "public"), ("private", "_private"), ("rust", "Rust"), ("boundary", "boundary")):
        x = picture.name(x, y, fill, name).right + 8
    picture.text(16, y + 50, "A module imports only modules of lower rank, which are further down.")
    picture.text(16, y + 74, "The boundary: src/py is compiled to the extension module deltafast._core.")
    return picture.svg()


def _draw_rows(picture: Picture, panel: Box, rows: list[tuple[str, list[str]]], fill: str = "") -> dict[str, Box]:
    """Draw a rank and its modules in each row of a panel, and return where each module is."""
    boxes: dict[str, Box] = {}
    for number, (rank, names) in enumerate(rows):
        y, x = panel.y + FIRST_ROW + number * PITCH, panel.x + (38 if rank else 14)
        picture.text(panel.x + 30, y + 18, rank, anchor="end")
        for name in names:
            colour = "boundary" if name in {"_core", "py"} else fill or _python_fill(name)
            boxes[name] = picture.name(x, y, colour, name)
            x = boxes[name].right + 6
        if x > panel.right:
            sys.exit(f"too wide for its panel: {names}")
    return boxes


def _python_fill(name: str) -> str:
    return "private" if name.startswith("_") and not name.startswith("__") else "public"


@dataclass(frozen=True)
class Stage:
    """A stage of a path: its title, modules and explanation; what it reads or writes; what it hands on."""

    title: str
    code: str
    lines: tuple[str, ...]
    store: tuple[str, ...] = ()
    result: str = ""


READ = (
    Stage(
        "List",
        "log",
        ("The hint and one listing of the log from there.", "A catalog that manages commits is asked first."),
        ("_last_checkpoint", "names in _delta_log/"),
        "log segment: a checkpoint, compactions, the commits after it",
    ),
    Stage(
        "Parse",
        "parse, pq, dv",
        ("Actions become columns; strings are views into the", "bytes. Statistics are parsed only if needed."),
        ("commits (JSON)", "checkpoint, sidecars"),
        "columns of actions, the newest commit first",
    ),
    Stage(
        "Reconcile",
        "reconcile",
        ("The newest action of each file wins. A file is a path", "and the unique id of its deletion vector."),
        (),
        "live files of the version",
    ),
    Stage(
        "Prune",
        "prune, scan",
        ("The predicate over the partition values and the", "statistics of the files."),
        (),
        "scan plan: files that may contain matching rows",
    ),
    Stage(
        "Scan",
        "scan, pq, dv",
        ("Decodes row groups on all cores, removes deleted rows,", "casts to the schema of the version."),
        ("data files (Parquet)", "deletion vectors"),
        "record batches of the table's schema",
    ),
    Stage(
        "Arrow",
        "py",
        ("An Arrow C stream. Any number can be open, pulled in", "any order; decoded batches share one memory budget."),
    ),
)


# Boxes next to a stage: whether the arrow points to the stage, the title and the lines.
ASIDE = (
    ("List", True, "Open, update", ("by version or time; opening", "ends with the next stage")),
    ("Parse", False, "Snapshot", ("protocol and metadata; no", "list of data files")),
    ("Prune", True, "Predicate", ("evaluated on statistics of", "the plan cache, if it is there")),
    ("Arrow", False, "Consumers", ("pyarrow, Polars, DuckDB,", "pandas, any other")),
)


def draw_read_path() -> str:
    """Draw the stages from a listing to Arrow data."""
    pitch, top, height, width = 106, 54, 66, 400
    picture = Picture(950, top + pitch * (len(READ) - 1) + height + 20, "Read path")
    picture.text(20, 34, "Read from the store", 15, "bold")
    picture.text(255, 34, "Stage", 15, "bold")
    stages: dict[str, Box] = {}
    for number, stage in enumerate(READ):
        box = Box(255, top + number * pitch, width, height)
        stages[stage.title] = picture.box(box, "stage", stage.title, stage.lines, stage.code)
        if stage.store:
            first, second = stage.store
            store = picture.box(Box(20, box.y + 8, 205, 50), "store", first, (second,))
            picture.arrow((store.right, store.middle[1]), (box.x, box.middle[1]))
        if stage.result:
            x = box.x + 40
            picture.arrow((x, box.bottom), (x, box.y + pitch))
            picture.text(x + 12, box.bottom + 25, stage.result, 12)
    for stage, inwards, title, lines in ASIDE:
        box = stages[stage]
        aside = picture.box(Box(695, box.y, 235, height), "store", title, lines)
        ends = [(box.right, box.middle[1]), (aside.x, aside.middle[1])]
        picture.arrow(*(reversed(ends) if inwards else ends))
    return picture.svg()


def draw_write_path() -> str:
    """Draw the stages from rows to a version, what may happen to a commit, and the maintenance after it."""
    picture = Picture(975, 728, "Write path")
    place = picture.place

    rows = place(
        260,
        20,
        "Rows",
        "Cast to the table's schema; generated and identity",
        "columns filled, constraints checked.",
        code="file_writer",
    )
    encode = place(
        260,
        116,
        "Partition, encode",
        "One encoder for each partition; columns are encoded",
        "in parallel; files end at the target size.",
        code="file_writer, pq",
    )
    statistics = place(
        260,
        212,
        "Statistics",
        "Row counts, bounds and null counts are collected",
        "while a file is encoded.",
        code="file_writer, pq",
    )
    put = place(
        260,
        318,
        "Commit by put-if-absent",
        "The actions with current row ids, timestamps and a",
        "txnId, as the version after the newest.",
        code="commit",
    )
    stream = place(20, 20, "Arrow stream", "batch by batch, never", "collected", fill="store")
    data = place(720, 116, "Data files", "of a write; also change files", "and deletion vectors of DML", fill="store")
    transaction = place(20, 318, "Transaction", "what was read, what is", "added and removed", fill="store")
    version = place(
        720, 318, "New version", "durable before it is visible", "(local), or ratified (catalog)", fill="good"
    )
    winners = place(260, 436, "Winning commits", "are read, from the next", "version to the newest")
    check = place(260, 540, "Conflict detection", "by delta-spark's rules", "and files' statistics")
    rebase = place(20, 540, "Rebase", "row ids, metadata and", "timestamps are renewed")
    failed = place(260, 644, "Conflict", "exception; written files", "are deleted", fill="bad")
    reread = place(490, 436, "Read the version", "and compare its txnId", "with the commit's own")
    unknown = place(490, 540, "Unknown outcome", "exception; data files", "are kept", fill="bad")
    maintenance = place(
        720,
        436,
        "Maintenance",
        "checksum, checkpoint if due,",
        "cleanup of the log; errors",
        "are warnings",
        code="checkpoint",
    )
    files = place(720, 562, "Files of the log", "checkpoint and .crc;", "_last_checkpoint at the end", fill="store")

    picture.arrow((stream.right, rows.middle[1]), (rows.x, rows.middle[1]))
    picture.arrow((300, rows.bottom), (300, encode.y), label="typed batches in slices", at=(312, rows.bottom + 20))
    picture.arrow((300, encode.bottom), (300, statistics.y), label="encoded row groups", at=(312, encode.bottom + 20))
    picture.arrow((encode.right, data.middle[1]), (data.x, data.middle[1]))
    picture.arrow(
        (300, statistics.bottom), (300, put.y), label="add, remove and cdc actions", at=(312, statistics.bottom + 25)
    )
    picture.arrow((transaction.right, put.middle[1]), (put.x, put.middle[1]))
    picture.arrow((put.right, put.middle[1]), (version.x, put.middle[1]), label="created", at=(665, put.middle[1] - 7))
    picture.arrow((355, put.bottom), (355, winners.y), label="exists", at=(362, put.bottom + 28))
    picture.arrow((355, winners.bottom), (355, check.y))
    picture.arrow(
        (check.x, check.middle[1]), (rebase.right, check.middle[1]), label="none", at=(220, check.middle[1] - 7)
    )
    picture.arrow(
        (115, rebase.y), (115, 411), (290, 411), (290, put.bottom), label="put the next version", at=(124, 428)
    )
    picture.arrow((355, check.bottom), (355, failed.y), label="conflict", at=(362, check.bottom + 23))
    picture.arrow((reread.x, 475), (winners.right, 475), label="other", at=(453, 468))
    picture.arrow((510, put.bottom), (510, reread.y), label="no answer", at=(517, put.bottom + 28))
    picture.arrow((605, reread.y), (605, put.bottom), label="absent", at=(612, put.bottom + 28))
    picture.arrow(
        (reread.right, 475), (690, 475), (690, 411), (750, 411), (750, version.bottom), label="ours", at=(666, 495)
    )
    picture.arrow((575, reread.bottom), (575, unknown.y), label="unreadable", at=(582, reread.bottom + 23))
    picture.arrow((837, version.bottom), (837, maintenance.y))
    picture.arrow((837, maintenance.bottom), (837, files.y))
    return picture.svg()


PICTURES = {"ranks.svg": draw_ranks, "read_path.svg": draw_read_path, "write_path.svg": draw_write_path}


def main() -> None:
    """Write the pictures, or compare them."""
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    IMAGES.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        path, drawn = IMAGES / name, draw()
        if not sys.argv[1:]:
            path.write_text(drawn, encoding="utf-8", newline="\n")
        elif not path.is_file() or path.read_text(encoding="utf-8") != drawn:
            sys.exit(f"docs/images/{name} is out of date: run python dev/draw_design.py")


if __name__ == "__main__":
    main()
