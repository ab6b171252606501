"""A program that uses Delta tables through Dask. It imports nothing of deltafast."""

import sys
from pathlib import Path

import dask
import dask.dataframe as dd
import dask_deltatable as ddt
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable

dask.config.set(scheduler="threads")
folder = Path(sys.argv[1])
rows = pd.DataFrame({"id": range(10), "v": [i * 1.5 for i in range(10)], "k": list("ab") * 5})
frame = dd.from_pandas(rows, npartitions=2)

ddt.to_deltalake(str(folder / "t"), frame)
ddt.to_deltalake(str(folder / "t"), frame, mode="append")
assert DeltaTable(folder / "t").version() == 1
assert ddt.read_deltalake(str(folder / "t")).compute()["v"].sum() == 2 * rows["v"].sum()
assert len(ddt.read_deltalake(str(folder / "t"), version=0, columns=["id"]).compute()) == 10

schema = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("k", pa.string())])
ddt.to_deltalake(str(folder / "p"), frame, schema=schema, partition_by=["k"])
found = ddt.read_deltalake(str(folder / "p"), filter=[("k", "=", "a")]).compute()
assert sorted(found["id"]) == [0, 2, 4, 6, 8]
assert DeltaTable(folder / "p").metadata().partition_columns == ["k"]
print("done")
