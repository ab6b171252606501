"""Exceptions of Spark Connect; see `sessions/test_connect.py` for a session of it."""

from __future__ import annotations

import json
import pickle
import re

import pytest

from deltafast.exceptions import ConcurrentAppendError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def test_conflicts_that_a_server_reports_are_delta_sparks_exceptions():
    error_details = pytest.importorskip("google.rpc.error_details_pb2")
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException, convert_exception

    from deltafast.spark import exceptions
    from deltafast.spark._session import connect_exceptions

    info = error_details.ErrorInfo()
    names = ("ConcurrentAppendException", "DeltaConcurrentModificationException")
    info.metadata["classes"] = json.dumps([f"io.delta.exceptions.{name}" for name in names])
    info.metadata["errorClass"] = "DELTA_CONCURRENT_APPEND"
    info.metadata["sqlState"] = "2D521"
    info.metadata["messageParameters"] = json.dumps({"partition": "all"})
    found = convert_exception(info, "files were added", None)
    for kind in (
        connect_exceptions.ConcurrentAppendException,
        exceptions.ConcurrentAppendException,
        ConcurrentAppendError,
        SparkConnectGrpcException,
    ):
        assert isinstance(found, kind)
    assert (found.getMessage(), found.getCondition()) == ("files were added", "DELTA_CONCURRENT_APPEND")
    assert (found.getSqlState(), found.getMessageParameters()) == ("2D521", {"partition": "all"})
    again = pickle.loads(pickle.dumps(found))
    assert (type(again), again.getCondition()) == (type(found), "DELTA_CONCURRENT_APPEND")


@pytest.mark.parametrize(
    "name", ["ConcurrentAppend", "ConcurrentDeleteRead", "ConcurrentDeleteDelete", "ConcurrentWrite"]
)
def test_conflicts_of_this_process_are_delta_sparks_exceptions(name):
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    from deltafast import exceptions as ours
    from deltafast.spark import exceptions
    from deltafast.spark._session import connect_exceptions

    raised = exceptions.as_spark_error(getattr(ours, f"{name}Error")("another commit", path="/t", version=3))
    for kind in (
        getattr(connect_exceptions, f"{name}Exception"),
        getattr(exceptions, f"{name}Exception"),
        getattr(ours, f"{name}Error"),
        SparkConnectGrpcException,
    ):
        assert isinstance(raised, kind)
    condition = raised.getCondition()
    assert condition in (f"DELTA_{of(name)}", f"DELTA_{of(name)}.WITHOUT_HINT")
    assert raised.getSqlState() == "2D521"
    assert str(raised).startswith(f"[{condition}] ")
    assert str(raised).endswith("another commit")
    assert (raised.version, raised.path) == (3, "/t")


def of(name: str) -> str:
    """Return a class name as the words of a condition."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
