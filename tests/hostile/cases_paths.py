"""Paths from the log: what leaves the table's store is refused when it would be opened, never before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tablekit import log

from .generate import Expect, case, either, error, rows

if TYPE_CHECKING:
    import pathlib

ALL = range(30)
TWO = range(20)
LEAK = ("root:x:0", "daemon:")


def _outside(folder: pathlib.Path) -> tuple[log.Table, int]:
    """Return the basic table without its third file, which lies beside the table, and that file's size."""
    table = log.basic(folder)
    place = folder.parent / "outside"
    place.mkdir(exist_ok=True)
    (folder / "part-2.parquet").rename(place / "x.parquet")
    return table, (place / "x.parquet").stat().st_size


_ESCAPES: list[tuple[str, str, Expect]] = [
    ("climbs_out", "../outside/x.parquet", error("DeltaError", "outside")),
    ("climbs_out_later", "a/b/../../../outside/x.parquet", error("DeltaError", "outside")),
    ("climbs_out_encoded", "%2e%2e/outside/x.parquet", error("DeltaError", "outside")),
    ("climbs_out_encoded_slash", "..%2Foutside%2Fx.parquet", error("DeltaError", "outside")),
    ("climbs_out_upper", "%2E%2E%2Foutside/x.parquet", error("DeltaError", "outside")),
    ("climbs_out_twice_encoded", "%252e%252e/outside/x.parquet", error("DeltaError", "outside")),
    ("climbs_out_with_backslash", "..\\outside\\x.parquet", error("DeltaError", "outside")),
    ("climbs_out_by_folder", "p=1/../../outside/x.parquet", error("DeltaError", "outside")),
    ("of_the_system", "/etc/passwd", error("DeltaError", "passwd")),
    ("of_the_system_by_url", "file:///etc/passwd", error("DeltaError", "passwd")),
    ("of_the_process", "/proc/self/environ", error("DeltaError", "environ")),
    ("of_the_memory", "/proc/self/mem", error("DeltaError", "mem")),
    ("endless", "/dev/zero", error("DeltaError", "zero")),
    ("of_a_terminal", "/dev/tty", error("DeltaError", "tty")),
    ("of_another_host", "file://example.com/x.parquet", error("DeltaError", "x.parquet")),
    ("on_the_web", "http://127.0.0.1:9/x.parquet", error("DeltaError", "x.parquet")),
    ("on_the_web_encrypted", "https://example.com/x.parquet", error("DeltaError", "x.parquet")),
    ("on_s3", "s3://bucket/x.parquet", error("DeltaError", "x.parquet")),
    ("on_azure", "abfss://c@a.dfs.core.windows.net/x.parquet", error("DeltaError", "x.parquet")),
    ("on_gcs", "gs://bucket/x.parquet", error("DeltaError", "x.parquet")),
    ("of_an_unknown_scheme", "warp://bucket/x.parquet", error("DeltaError", "x.parquet")),
    ("by_data_url", "data:text/plain,hello", error("DeltaError")),
    ("with_nul", "part%00-2.parquet", error("DeltaError")),
    ("with_bad_percent", "part-%zz.parquet", error("DeltaError", "part-")),
    ("with_cut_percent", "part-2.parquet%", error("DeltaError", "part-2.parquet")),
    ("with_no_utf8", "part-%ff%fe.parquet", error("DeltaError", "part-")),
    ("of_the_table_itself", ".", error("DeltaError")),
    ("of_a_folder", "folder/", error("DeltaError")),
    ("of_the_log", "_delta_log/00000000000000000000.json", error("DeltaError", "00000000000000000000.json")),
    ("of_100000_letters", "x" * 100_000, error("DeltaError")),
    ("of_100000_folders", "a/" * 100_000 + "x", error("DeltaError")),
    ("with_escape_codes", "\x1b[31mred\x1b[0m\n\r\x07.parquet", error("DeltaError")),
    ("with_escape_codes_encoded", "%1b%5B31mred%0a%0d.parquet", error("DeltaError")),
    ("with_right_to_left_text", "\N{RIGHT-TO-LEFT OVERRIDE}teuqrap.x", error("DeltaError")),
]
for _name, _path, _expect in _ESCAPES:

    @case(f"path_{_name}", _expect, secrets=LEAK)
    def _(folder: pathlib.Path, path: str = _path) -> None:
        """A path that must not be followed, or leads nowhere."""
        table, size = _outside(folder)
        table.commit(2, log.add(path, size))

    # A path that is not a string at all is corrupt wherever it stands.
    _removed = either(TWO, "CorruptLogError") if _name in {"with_nul", "with_no_utf8"} else rows(TWO)

    @case(f"path_{_name}_of_a_removed_file", _removed, secrets=LEAK)
    def _(folder: pathlib.Path, path: str = _path) -> None:
        """The same path of a file that is removed again: it must not stop a snapshot."""
        table, size = _outside(folder)
        table.commit(2, log.add(path, size))
        table.commit(3, log.remove(path))


@case("path_climbs_and_comes_back", either(ALL, "DeltaError", "part-2"))
def _(folder: pathlib.Path) -> None:
    """A path that leaves the table and comes back."""
    table = log.basic(folder)
    add = table.actions(2, 2)[0]
    add["add"]["path"] = f"../{folder.name}/part-2.parquet"
    table.commit(2, add)


@case("path_with_dots_inside", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Names with dots that do not climb."""
    table = log.basic(folder)
    table.commit(2, table.ids("..a/...b/c..parquet", 20, 30))


@case("path_absolute_in_the_table", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """The table's own file by its absolute path."""
    table = log.basic(folder)
    add = table.actions(2, 2)[0]
    add["add"]["path"] = str(folder / "part-2.parquet")
    table.commit(2, add)


@case("path_absolute_in_the_store", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """A file of another folder in the same store, as shallow clones have."""
    table, size = _outside(folder)
    table.commit(2, log.add(str(folder.parent / "outside" / "x.parquet"), size))


for _name, _form in [("url", "file://{}"), ("short_url", "file:{}"), ("localhost_url", "file://localhost{}")]:

    @case(f"path_by_{_name}", rows(ALL) if _name != "localhost_url" else either(ALL))
    def _(folder: pathlib.Path, form: str = _form) -> None:
        """The same as a URL."""
        table, size = _outside(folder)
        table.commit(2, log.add(form.format(folder.parent / "outside" / "x.parquet"), size))


@case("path_spelled_otherwise_in_the_remove", rows(TWO))
def _(folder: pathlib.Path) -> None:
    """One file under three spellings of its path is one file: the remove takes the add away."""
    table, size = _outside(folder)
    outside = folder.parent / "outside" / "x.parquet"
    table.commit(2, log.add(str(outside), size))
    table.commit(3, log.remove(outside.as_uri()))


for _name in [
    "a b",
    "a%b",
    "a+b",
    "a#b",
    "a?b",
    "a:b",
    "a=b",
    "\N{LATIN SMALL LETTER A WITH DIAERESIS}\N{SNOWMAN}",
    "a;b&c",
    "[a]{b}",
    "~a",
    "a'b\"c",
    "a\\b",
    "a\tb",
]:
    _safe = "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}_" for c in _name)

    @case(f"path_letters_{_safe}", rows(ALL))
    def _(folder: pathlib.Path, name: str = _name) -> None:
        """Odd letters in a file's name, percent-encoded in the log."""
        table = log.basic(folder)
        table.commit(2, table.ids(f"{name}/{name}.parquet", 20, 30))


@case("symlink_to_the_outside", either(ALL))
def _(folder: pathlib.Path) -> None:
    """A data file that links to a file outside the table: the file system's owner decided so."""
    table, _ = _outside(folder)
    (folder / "part-2.parquet").symlink_to(folder.parent / "outside" / "x.parquet")
    assert table.folder == folder


@case("table_behind_a_symlink", rows(ALL))
def _(folder: pathlib.Path) -> str:
    """The address is a link to the table."""
    log.basic(folder)
    (folder.parent / "link").symlink_to(folder)
    return str(folder.parent / "link")


@case("table_folder_with_odd_letters", rows(ALL))
def _(folder: pathlib.Path) -> str:
    """The table's own folder has a name that needs encoding in URLs; as a path it is taken literally."""
    place = folder / "a b%20c#d?e=\N{SNOWMAN}"
    log.basic(place)
    return str(place)


@case("table_folder_by_url", rows(ALL))
def _(folder: pathlib.Path) -> str:
    """The same as a URL."""
    place = folder / "a b%20c#d?e=\N{SNOWMAN}"
    log.basic(place)
    return place.as_uri()


@case("clone_of_a_foreign_table", error("DeltaError", "bucket"))
def _(folder: pathlib.Path) -> None:
    """A local table whose live file lies in a bucket: refused, and the message says where."""
    table = log.basic(folder)
    table.commit(3, log.add("s3://bucket/clone/x.parquet", 5))
