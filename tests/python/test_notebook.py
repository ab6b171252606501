"""A notebook shows tables, schemas, results and findings, in a kernel as Jupyter starts it."""

import nbformat
import pytest
from nbclient import NotebookClient

#: Cells whose last value has a representation in HTML, and words of it.
SHOWN = {
    "table": ["orders", "version", "state"],
    "table.schema()": ["id", "long"],
    "table.history()": ["WRITE", "DELETE"],
    "table.detail()": ["numFiles"],
    "table.explain('id = 1')": ["`id` = 1L"],
    "deltafast.sql('SELECT id, state FROM delta.`orders` ORDER BY id')": ["paid"],
    "examine('orders')": ["Findings"],
}
START = """
import deltafast
from deltafast import DeltaTable, write_deltalake
from deltafast.doctor import examine
from deltafast.layout import measure

write_deltalake("orders", {"id": [1, 2, 3], "state": ["new", "paid", "new"]})
table = DeltaTable("orders")
table.delete("id = 3")
"""


@pytest.mark.slow
def test_a_notebook_shows_what_cells_return(tmp_path):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(code) for code in (START, *SHOWN, "measure(table)")]
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, words in zip(notebook.cells[1:], SHOWN.values(), strict=False):
        (output,) = (output for output in cell.outputs if output.output_type == "execute_result")
        html = output.data["text/html"]
        assert [word for word in words if word not in html] == [], cell.source
        assert "text/plain" in output.data
    (picture,) = (output for output in notebook.cells[-1].outputs if output.output_type == "execute_result")
    assert picture.data["image/svg+xml"].startswith("<svg")
