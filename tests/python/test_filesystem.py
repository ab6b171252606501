"""A table's folder as a pyarrow file system: what deltalake's handler says, ours says."""

import gc
import pickle

import deltalake
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake.fs import DeltaStorageHandler as Theirs

import servers
from deltafast import DeltaTable, write_deltalake
from deltafast.filesystem import DeltaStorageHandler

ROWS = pa.table({"a": range(10), "c": [1, 2] * 5})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t").mkdir()
    return tmp_path / "t"


@pytest.fixture
def system(folder):
    return pafs.PyFileSystem(DeltaStorageHandler(folder))


def facts(infos):
    return sorted((i.path, i.type.name, i.size, i.mtime_ns, i.base_name) for i in infos)


def test_it_sees_what_deltalakes_sees(folder, system):
    theirs = pafs.PyFileSystem(Theirs(str(folder)))
    pads.write_dataset(
        ROWS,
        "/",
        partitioning=pads.partitioning(pa.schema([("c", pa.int64())]), flavor="hive"),
        format="parquet",
        filesystem=system,
    )
    (folder / "x y%").write_bytes(b"12345")
    paths = ["x y%", "c=1", "c=1/part-0.parquet", "nothing", "/c=2/", ""]
    assert facts(system.get_file_info(paths)) == facts(theirs.get_file_info(paths))
    for recursive in (True, False):
        selector = pafs.FileSelector("/", recursive=recursive)
        assert facts(system.get_file_info(selector)) == facts(theirs.get_file_info(selector))
    assert len(system.get_file_info(pafs.FileSelector("/", recursive=True))) == 5
    assert system.get_file_info(pafs.FileSelector("none", allow_not_found=True)) == []
    with pytest.raises(FileNotFoundError):
        system.get_file_info(pafs.FileSelector("none"))
    assert system.type_name == theirs.type_name


def test_files_are_read_and_written(folder, system):
    pq.write_table(ROWS, "sub/a.parquet", filesystem=system)
    assert pq.read_table(folder / "sub" / "a.parquet") == ROWS
    assert pq.read_table("sub/a.parquet", filesystem=system) == ROWS
    assert pads.dataset("/", format="parquet", filesystem=system).to_table() == ROWS
    pq.write_table(ROWS.slice(0, 1), "sub/a.parquet", filesystem=system)
    assert pq.read_table("sub/a.parquet", filesystem=system).num_rows == 1
    with system.open_output_stream("bytes") as out:
        assert out.tell() == 0
        out.write(b"0123")
        assert not (folder / "bytes").exists()
        out.write(b"456789")
    found = system.open_input_file("bytes")
    assert (found.size(), found.read(3), found.tell(), found.read_at(2, 8), found.seek(5)) == (10, b"012", 3, b"89", 5)
    assert (found.read(), found.read(), found.seek(-1, 2), found.read(9)) == (b"56789", b"", 9, b"9")
    assert system.open_input_stream("bytes").read() == b"0123456789"
    with pytest.raises(FileNotFoundError):
        system.open_input_file("none")
    with pytest.raises(NotImplementedError):
        system.open_append_stream("bytes")


def test_a_file_that_is_not_closed_does_not_appear(folder, system):
    stream = system.open_output_stream("half")
    stream.write(b"x")
    del stream
    gc.collect()
    assert list(folder.iterdir()) == []


def test_files_and_folders_are_moved_and_deleted(folder, system):
    for name in ("foo/x", "foo/deep/y", "foo2/z", "w"):
        with system.open_output_stream(name) as out:
            out.write(name.encode())
    system.copy_file("w", "copy")
    system.move("copy", "foo2/moved")
    assert (folder / "foo2" / "moved").read_bytes() == b"w"
    assert not (folder / "copy").exists()
    system.delete_dir("foo")
    assert {p.name for p in folder.rglob("*") if p.is_file()} == {"z", "moved", "w"}
    system.create_dir("empty")
    system.delete_dir_contents("foo2")
    system.delete_file("w")
    assert not [p for p in folder.rglob("*") if p.is_file()]
    system.delete_dir_contents("none", missing_dir_ok=True)
    with pytest.raises(FileNotFoundError):
        system.delete_dir_contents("none")
    with pytest.raises(ValueError, match="name a folder"):
        DeltaStorageHandler(folder).delete_dir_contents("/")


def test_a_table_gives_its_own(folder):
    deltalake.write_deltalake(folder, ROWS)
    table = DeltaTable(folder)
    sizes = table._table.get_add_file_sizes()
    assert sizes == deltalake.DeltaTable(folder)._table.get_add_file_sizes()
    (name,) = sizes
    system = pafs.PyFileSystem(DeltaStorageHandler.from_table(table._table, None, {name: 12345}))
    assert system.open_input_file(name).size() == 12345
    plain = DeltaStorageHandler.from_table(table._table)
    assert pafs.PyFileSystem(plain).open_input_file(name).size() == sizes[name]
    found = table.to_pyarrow_dataset(filesystem=pafs.PyFileSystem(plain)).to_table()
    assert found.sort_by("a") == ROWS
    again = pickle.loads(pickle.dumps(plain))
    assert again == plain
    assert again != DeltaStorageHandler(folder / "other")
    assert pafs.PyFileSystem(again).get_file_info(name).size == sizes[name]


def test_paths_stay_inside(folder, system):
    (folder.parent / "secret").write_text("s", encoding="utf-8")
    for call in (system.open_input_file, system.delete_file, system.delete_dir, system.open_output_stream):
        with pytest.raises(ValueError, match="a path below the table cannot have the part"):
            call("a/../../secret")
    assert (folder.parent / "secret").read_text("utf-8") == "s"


@pytest.mark.slow
def test_it_is_the_same_in_an_object_store():
    with servers.s3() as bucket:
        handler = DeltaStorageHandler(f"s3://{bucket.bucket}/some where/t", bucket.options())
        system = pafs.PyFileSystem(pickle.loads(pickle.dumps(handler)))
        test_files = {"a b/c=1/x.parquet": 3, "y": 0, "big": 12 << 20}
        for name, size in test_files.items():
            with system.open_output_stream(name) as out:
                for start in range(0, size, 1 << 20):
                    out.write(b"x" * min(1 << 20, size - start))
        found = system.get_file_info(pafs.FileSelector("", recursive=True))
        assert {info.path: info.size for info in found if info.type == pafs.FileType.File} == test_files
        assert {info.path for info in found if info.type == pafs.FileType.Directory} == {"a b", "a b/c=1"}
        kinds = [info.type.name for info in system.get_file_info(["a b", "y", "none", "a b/c=1/x.parquet"])]
        assert kinds == ["Directory", "File", "NotFound", "File"]
        assert system.open_input_file("big").read_at(5, (12 << 20) - 5) == b"xxxxx"
        system.move("y", "z/y")
        system.delete_dir("a b")
        left = [info.path for info in system.get_file_info(pafs.FileSelector("", recursive=True))]
        assert sorted(left) == ["big", "z", "z/y"]
        write_deltalake(f"s3://{bucket.bucket}/t", ROWS, storage_options=bucket.options())
        table = DeltaTable(f"s3://{bucket.bucket}/t", storage_options=bucket.options())
        own = pafs.PyFileSystem(DeltaStorageHandler.from_table(table._table))
        assert table.to_pyarrow_dataset(filesystem=own).to_table().sort_by("a") == ROWS
