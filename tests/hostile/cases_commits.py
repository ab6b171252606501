"""Commit files whose bytes are broken."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from tablekit import log

from .generate import MEBIBYTE, anything, case, either, error, rows

if TYPE_CHECKING:
    import pathlib

ALL = range(30)
TWO = range(20)
THIRD = "00000000000000000002.json"


def _third(folder: pathlib.Path, *lines: log.Action | str | bytes) -> log.Table:
    """Return the basic table with the third commit replaced."""
    table = log.basic(folder)
    table.commit(2, *lines)
    return table


def _third_add(folder: pathlib.Path) -> tuple[log.Table, str]:
    """Return the basic table and the line of its third commit."""
    table = log.basic(folder)
    return table, table.commit_file(2).read_text("utf-8").strip()


@case("commit_truncated", error("CorruptLogError", THIRD, "line 1"))
def _(folder: pathlib.Path) -> None:
    """The last line stops in the middle, as after a crash of a writer on a store without atomic puts."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line[: len(line) // 2], "utf-8")


@case("commit_truncated_in_second_line", error("CorruptLogError", THIRD, "line 2"))
def _(folder: pathlib.Path) -> None:
    """The message names the line, not just the file."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text('{"commitInfo":{"operation":"WRITE"}}\n' + line[:-5], "utf-8")


@case("commit_truncated_in_a_string", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """The file stops inside a path."""
    _third(folder, b'{"add":{"path":"part-2.par')


@case("commit_empty", either(TWO, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A commit without any action: nothing happened, or the file was lost."""
    _third(folder)


@case("commit_of_newlines", either(TWO, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Nothing but empty lines."""
    log.basic(folder).commit_file(2).write_bytes(b"\n" * 1000)


@case("commit_not_json", error("CorruptLogError", THIRD, "line 1"))
def _(folder: pathlib.Path) -> None:
    """Plain text."""
    _third(folder, b"this is not a commit")


@case("commit_binary", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Random bytes."""
    log.basic(folder).commit_file(2).write_bytes(bytes(i * 197 % 256 for i in range(5000)))


@case("commit_zeros", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A block of zero bytes, as file systems leave after a power loss."""
    log.basic(folder).commit_file(2).write_bytes(bytes(4096))


@case("commit_zeros_at_end", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A good line, then zeros."""
    table, line = _third_add(folder)
    table.commit_file(2).write_bytes(line.encode() + b"\n" + bytes(512))


@case("commit_invalid_utf8", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A path with a byte that is not UTF-8."""
    _third(
        folder,
        b'{"add":{"path":"part-\xff\xfe.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}',
    )


@case("commit_lone_surrogate", error("CorruptLogError|DataFileNotFoundError|InvalidArgumentError"))
def _(folder: pathlib.Path) -> None:
    r"""A path with half of a surrogate pair: `\ud800`."""
    _third(
        folder,
        b'{"add":{"path":"part-\\ud800.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}',
    )


@case("commit_utf16", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """The commit in UTF-16, as a Windows editor saves it."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line, "utf-16")


@case("commit_byte_order_mark", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """The commit with a UTF-8 byte order mark."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line, "utf-8-sig")


@case("commit_crlf", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Windows line ends."""
    table, line = _third_add(folder)
    table.commit_file(2).write_bytes(b'{"commitInfo":{}}\r\n' + line.encode() + b"\r\n")


@case("commit_no_final_newline", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """No newline after the last line."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line, "utf-8")


@case("commit_blank_lines", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Empty lines and spaces between actions."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text("\n\n   \n" + line + "\n \n\n", "utf-8")


@case("commit_spaces_in_json", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """JSON with spaces and tabs, and keys in another order."""
    table, line = _third_add(folder)
    add = json.loads(line)["add"]
    text = json.dumps({"add": dict(reversed(add.items()))}, separators=(" ,\t", " :\t"))
    table.commit_file(2).write_text("  " + text + "  \n", "utf-8")


@case("commit_escaped_text", rows(ALL))
def _(folder: pathlib.Path) -> None:
    r"""Every letter of keys and path written as `\uXXXX`."""
    table, line = _third_add(folder)
    name = "".join(f"\\u{ord(c):04x}" for c in "part-2.parquet")
    key = "".join(f"\\u{ord(c):04X}" for c in "path")
    table.commit_file(2).write_text(line.replace("part-2.parquet", name).replace('"path"', f'"{key}"'), "utf-8")


@case("commit_array_line", error("CorruptLogError", THIRD, "line 1"))
def _(folder: pathlib.Path) -> None:
    """An array where an action must be."""
    _third(folder, b"[]")


@case("commit_array_of_actions", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """All actions in one array."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(f"[{line}]\n", "utf-8")


@case("commit_number_line", error("CorruptLogError", THIRD, "line 1"))
def _(folder: pathlib.Path) -> None:
    """A number where an action must be."""
    _third(folder, b"42")


@case("commit_string_line", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A string where an action must be."""
    _third(folder, b'"add"')


@case("commit_null_line", either(TWO, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """`null` where an action must be."""
    _third(folder, b"null")


@case("commit_empty_object_line", either(TWO, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """An object without an action."""
    _third(folder, b"{}")


@case("commit_two_objects_in_a_line", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Two actions without a newline between them: the second must not be lost in silence."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text('{"commitInfo":{}}' + line + "\n", "utf-8")


@case("commit_garbage_after_object", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A good action, then text in the same line."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line + " trailing\n", "utf-8")


@case("commit_pretty_printed", error("CorruptLogError", THIRD, "line 1"))
def _(folder: pathlib.Path) -> None:
    """One action over many lines."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(json.dumps(json.loads(line), indent=2), "utf-8")


@case("commit_single_quotes", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """Python's repr instead of JSON."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(repr(json.loads(line)), "utf-8")


@case("commit_with_comment", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A comment."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text("// written by hand\n" + line, "utf-8")


@case("commit_trailing_comma", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A comma too many."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line[:-2] + ",}}", "utf-8")


@case("commit_raw_control_characters", error("CorruptLogError|DataFileNotFoundError"))
def _(folder: pathlib.Path) -> None:
    """A tab inside a string, which JSON forbids."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line.replace("part-2", "part\t2"), "utf-8")


@case("commit_duplicate_key_in_action", either(ALL, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """The path twice; the last is the right one, as parsers have it that do not refuse it."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line.replace('{"path":', '{"path":"part-9.parquet","path":', 1), "utf-8")


@case("commit_two_actions_in_one_object", either(ALL, "CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """An object with two kinds of action."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(line[:-1] + ',"txn":{"appId":"a","version":1}}', "utf-8")


@case("commit_action_is_null", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """The other actions of the line written as null, as some writers do."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text('{"remove":null,"txn":null,' + line[1:], "utf-8")


@case("commit_unknown_action", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """An action of a later version of the protocol."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text('{"futureAction":{"path":"part-0.parquet","x":[1,{"y":null}]}}\n' + line, "utf-8")


@case("commit_unknown_fields", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Fields of a later version of the protocol, before and after the known ones."""
    table, line = _third_add(folder)
    text = line.replace('{"path":', '{"before":{"path":"x","size":[1]},"path":', 1)[:-2] + ',"after":[{"path":"y"}]}}'
    table.commit_file(2).write_text(text, "utf-8")


@case("commit_unknown_deep_action", either(ALL))
def _(folder: pathlib.Path) -> None:
    """An unknown action of 100,000 nested arrays: a recursive parser overflows its stack."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text('{"x":' + "[" * 100_000 + "]" * 100_000 + "}\n" + line, "utf-8")


@case("commit_unknown_deep_objects", either(ALL))
def _(folder: pathlib.Path) -> None:
    """A field of 100,000 nested objects inside an add."""
    table, line = _third_add(folder)
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    table.commit_file(2).write_text(line[:-2] + ',"x":' + deep + "}}\n", "utf-8")


@case("commit_unclosed_deep", error("CorruptLogError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A million opening brackets and nothing else."""
    _third(folder, b"[" * 1_000_000)


@case("commit_line_of_64_mebibytes", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """One line with a text of 64 MiB in a field that nobody needs."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text('{"commitInfo":{"x":"' + "a" * (64 * MEBIBYTE) + '"}}\n' + line, "utf-8")


@case("commit_file_of_spaces", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """A good line after 32 MiB of spaces."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text(" " * (32 * MEBIBYTE) + line, "utf-8")


@case("commit_million_newlines", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Four million empty lines around a good one."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text("\n" * 2_000_000 + line + "\n" * 2_000_000, "utf-8")


@case("commit_many_unknown_actions", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Half a million lines that mean nothing."""
    table, line = _third_add(folder)
    table.commit_file(2).write_text('{"noise":{"a":1}}\n' * 500_000 + line, "utf-8")


@case("commit_is_a_directory", error("CorruptLogError|StorageError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A folder where the commit should be: the table must not seem to end before it."""
    table = log.basic(folder)
    table.commit_file(2).unlink()
    table.commit_file(2).mkdir()


@case("commit_is_a_symlink_loop", error("CorruptLogError|StorageError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A commit that is a link to itself."""
    table = log.basic(folder)
    table.commit_file(2).unlink()
    table.commit_file(2).symlink_to(THIRD)


@case("commit_is_a_dangling_symlink", error("CorruptLogError|StorageError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A commit that links to nothing."""
    table = log.basic(folder)
    table.commit_file(2).unlink()
    table.commit_file(2).symlink_to("nowhere.json")


@case("commit_is_a_symlink", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """A commit that links to a good file: file systems with links are in use."""
    table = log.basic(folder)
    table.commit_file(2).rename(folder / "elsewhere.json")
    table.commit_file(2).symlink_to("../elsewhere.json")


@case("commit_is_a_pipe", error("CorruptLogError|StorageError", THIRD))
def _(folder: pathlib.Path) -> None:
    """A named pipe: opening it waits for ever."""
    table = log.basic(folder)
    table.commit_file(2).unlink()
    os.mkfifo(table.commit_file(2))


@case("log_is_a_file", error("TableNotFoundError|CorruptLogError|StorageError"))
def _(folder: pathlib.Path) -> None:
    """`_delta_log` is a file."""
    (folder / "_delta_log").write_bytes(b"")


@case("log_is_a_symlink_loop", error("TableNotFoundError|CorruptLogError|StorageError"))
def _(folder: pathlib.Path) -> None:
    """`_delta_log` links to itself."""
    (folder / "_delta_log").symlink_to("_delta_log")


@case("log_is_empty", error("TableNotFoundError"))
def _(folder: pathlib.Path) -> None:
    """`_delta_log` holds nothing."""
    log.Table(folder)


@case("log_is_missing", error("TableNotFoundError"))
def _(folder: pathlib.Path) -> None:
    """A folder with Parquet files and no log."""
    table = log.basic(folder)
    table.drop_commits(0, 2)
    table.log.rmdir()


@case("table_is_missing", error("TableNotFoundError", "nothing-here"))
def _(folder: pathlib.Path) -> str:
    """No such folder: the error names it."""
    return str(folder / "nothing-here")


@case("table_is_a_file", error("TableNotFoundError|StorageError"))
def _(folder: pathlib.Path) -> str:
    """The address of a file."""
    (folder / "file").write_bytes(b"x")
    return str(folder / "file")


@case("log_holds_junk", rows(ALL))
def _(folder: pathlib.Path) -> None:
    """Hidden, temporary and foreign files and folders in the log are ignored."""
    table = log.basic(folder)
    junk = [
        ".00000000000000000003.json",
        ".00000000000000000003.json.crc",
        "00000000000000000003.json.tmp",
        "00000000000000000003.json.part",
        "_commit_00000000000000000003.json.tmp",
        ".tmp.00000000000000000003.json",
        "00000000000000000003",
        "3.json",
        "000000000000000000003.json",
        "0000000000000000003.json",
        "00000000000000000003.JSON",
        "x00000000000000000003.json",
        "-0000000000000000003.json",
        "+0000000000000000003.json",
        "0000000000000000000\N{ARABIC-INDIC DIGIT THREE}.json",
        "00000000000000000001.checkpoint",
        "00000000000000000001.checkpoint.parquet.tmp",
        "00000000000000000001.checkpoint.0000000001.parquet",
        "00000000000000000001.checkpoint.not-a-uuid.parquet",
        "00000000000000000001.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.avro",
        "00000000000000000001.00000000000000000002.json",
        "_SUCCESS",
        "README",
    ]
    for name in junk:
        (table.log / name).write_bytes(b"junk")
    for name in ["_staged_commits", "_commits", "_sidecars", "_changelog", "folder"]:
        (table.log / name).mkdir()
        (table.log / name / "00000000000000000003.json").write_bytes(b"junk")


@case("version_number_overflows", either(ALL, "CorruptLogError"))
def _(folder: pathlib.Path) -> None:
    """A commit whose twenty digits exceed 64 bits."""
    (log.basic(folder).log / "99999999999999999999.json").write_bytes(b"{}")


@case("version_number_is_the_largest", error("CorruptLogError", "00000000000000000003"))
def _(folder: pathlib.Path) -> None:
    """A commit of version 2^63 - 1: a gap too large to walk through, let alone to list."""
    (log.basic(folder).log / "09223372036854775807.json").write_bytes(b"{}")


@case("log_gap", error("CorruptLogError", "00000000000000000001"))
def _(folder: pathlib.Path) -> None:
    """A commit is missing in the middle; the error names it."""
    log.basic(folder).drop_commits(1, 1)


@case("log_gap_of_two", error("CorruptLogError", "00000000000000000003"))
def _(folder: pathlib.Path) -> None:
    """Two commits are missing."""
    log.basic(folder, 6).drop_commits(3, 4)


@case("log_starts_late", error("CorruptLogError", "00000000000000000000"))
def _(folder: pathlib.Path) -> None:
    """The first commit is missing and there is no checkpoint."""
    log.basic(folder).drop_commits(0, 0)


@case("log_starts_late_but_has_protocol", error("CorruptLogError", "00000000000000000000"))
def _(folder: pathlib.Path) -> None:
    """The first commit is missing, a later one repeats protocol and metadata: files may still be lost."""
    table = log.basic(folder)
    table.commit(1, log.protocol(), log.metadata(), *table.actions(1, 1))
    table.drop_commits(0, 0)


@case("log_of_future_only", error("CorruptLogError|TableNotFoundError"))
def _(folder: pathlib.Path) -> None:
    """Only a commit far from zero."""
    table = log.basic(folder)
    table.commit_file(2).rename(table.log / "00000000000000001000.json")
    table.drop_commits(0, 1)


@case("commit_bits_flipped", anything())
def _(folder: pathlib.Path) -> None:
    """One bit flipped in every hundredth byte."""
    table, line = _third_add(folder)
    data = bytearray(line.encode())
    for i in range(0, len(data), 100):
        data[i] ^= 1 << (i % 7)
    table.commit_file(2).write_bytes(bytes(data))
