"""Python stores that misbehave: lists out of order, sizes that lie, reads that fail."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Entry = tuple[str, int, int]


class Honest:
    """A store over a local folder that does what stores must do."""

    def __init__(self, root: str) -> None:
        """Serve the folder `root`."""
        self.root = pathlib.Path(root)

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """Return the files of a folder after `offset`, in order."""
        folder = self.root / prefix
        if not folder.is_dir():
            return []
        found = [
            (f"{prefix.rstrip('/')}/{f.name}", f.stat().st_size, 1_700_000_000_000)
            for f in folder.iterdir()
            if f.is_file()
        ]
        return sorted(entry for entry in found if offset is None or entry[0] > offset)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Return a range of a file."""
        with (self.root / path).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def size(self, path: str) -> int:
        """Return the length of a file."""
        return (self.root / path).stat().st_size


class Unsorted(Honest):
    """Lists backwards."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        return reversed(list(super().list_from(prefix, offset)))


class Twice(Honest):
    """Lists each file twice."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        return [entry for entry in super().list_from(prefix, offset) for _ in range(2)]


class OffsetIgnored(Honest):
    """Lists all files, whatever the offset."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        del offset
        return super().list_from(prefix, None)


class Foreign(Honest):
    """Lists files of other folders too."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        more = [
            ("part-0.parquet", 5, 0),
            ("../outside.json", 5, 0),
            ("_delta_log/sub/00000000000000000009.json", 5, 0),
            ("", 0, 0),
        ]
        return sorted([*super().list_from(prefix, offset), *more])


class Stale(Honest):
    """Lists without the newest file, as eventually consistent stores did."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        return list(super().list_from(prefix, offset))[:-1]


class ListedSizes(Honest):
    """Lists sizes that lie."""

    lie = 0

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        return [(path, self.lie, time) for path, _, time in super().list_from(prefix, offset)]


class ListedSizesHuge(ListedSizes):
    """Lists sizes of exabytes."""

    lie = 1 << 62


class ListedSizesNegative(ListedSizes):
    """Lists negative sizes."""

    lie = -1


class ShortReads(Honest):
    """Returns half of what was asked for."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Honest`."""
        data = super().get_range(path, start, end)
        return data[: len(data) // 2]


class CutCommits(Honest):
    """Has lost the last line of each commit and compaction since they were listed."""

    def size(self, path: str) -> int:
        """See `Honest`."""
        return len(self._left(path))

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Honest`."""
        return self._left(path)[start:end]

    def _left(self, path: str) -> bytes:
        data = (self.root / path).read_bytes()
        return b"".join(data.splitlines(keepends=True)[:-1]) if path.endswith("2.json") else data


class CutCompactions(CutCommits):
    """Has lost the last line of each log compaction and JSON checkpoint since they were listed."""

    def _left(self, path: str) -> bytes:
        data = (self.root / path).read_bytes()
        is_cut = path.endswith((".compacted.json", "a11.json"))
        return b"".join(data.splitlines(keepends=True)[:-1]) if is_cut else data


class LongReads(Honest):
    """Returns more than was asked for."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Honest`."""
        return super().get_range(path, start, end) + b"more"


class TextReads(Honest):
    """Returns text instead of bytes."""

    def get_range(self, path: str, start: int, end: int) -> Any:
        """See `Honest`."""
        return super().get_range(path, start, end).decode("latin-1")


class Raising(Honest):
    """Fails with an error of its own, whose text is made to spoil a terminal."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Honest`."""
        message = "first line\nsecond line\x1b[31m red"
        raise ValueError(message)


class Refusing(Honest):
    """Has no permission."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Honest`."""
        raise PermissionError(13, "Permission denied", path)


class ListRaising(Honest):
    """Fails to list."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        message = "no list today"
        raise RuntimeError(message)


class ListFailingLate(Honest):
    """Fails in the middle of a list."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """See `Honest`."""
        yield next(iter(super().list_from(prefix, offset)))
        message = "no more"
        raise RuntimeError(message)


class ListOfNonsense(Honest):
    """Lists things that are no entries."""

    def list_from(self, prefix: str, offset: str | None) -> Any:
        """See `Honest`."""
        del prefix, offset
        return [1, "a", (b"x", "y"), None]


class ListOfNothing(Honest):
    """Lists None."""

    def list_from(self, prefix: str, offset: str | None) -> Any:
        """See `Honest`."""


class Exiting(Honest):
    """Wants to end the process."""

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Honest`."""
        raise SystemExit(3)


BY_NAME = {
    "honest": Honest,
    "unsorted": Unsorted,
    "cut_commits": CutCommits,
    "cut_compactions": CutCompactions,
    "twice": Twice,
    "offset_ignored": OffsetIgnored,
    "foreign": Foreign,
    "stale": Stale,
    "sizes_zero": ListedSizes,
    "sizes_huge": ListedSizesHuge,
    "sizes_negative": ListedSizesNegative,
    "short_reads": ShortReads,
    "long_reads": LongReads,
    "text_reads": TextReads,
    "raising": Raising,
    "refusing": Refusing,
    "list_raising": ListRaising,
    "list_failing_late": ListFailingLate,
    "list_of_nonsense": ListOfNonsense,
    "list_of_nothing": ListOfNothing,
    "exiting": Exiting,
}
