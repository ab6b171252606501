"""`readStream.format("delta")`: what the Java classes of a stream call to plan it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast.exceptions import InvalidArgumentError
from deltafast.spark._conditions import Operation
from deltafast.spark._scan.physical_columns import spark_schema
from deltafast.spark._session.java_calls import set_stream_handler, stream_planner, stream_provider
from deltafast.spark._session.session import Session
from deltafast.spark._session.storage import place_of
from deltafast.spark._streaming.batch_frames import BatchFrames, stream_fields
from deltafast.spark._streaming.delta_spark_offsets import offset_of
from deltafast.spark._streaming.options import SCHEMA_TRACKING, is_stream_option, stream_options
from deltafast.spark._streaming.schema_tracking import planned
from deltafast.spark._streaming.tracked_plan import TrackedPlan
from deltafast.spark.exceptions import during, set_failure
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from deltafast.spark._session.storage import Place
    from deltafast.spark._streaming.batch_planner import StreamPlan

__all__ = ["plan_streams", "stream_format"]


def stream_format(session: Session) -> str:
    """Return the name with which `readStream.format` reads tables where `delta` is another format.

    Raises:
        UnavailableError: This Spark does not accept the Java class.
    """
    provider = stream_provider(session)
    plan_streams(session, provider, "DeltaStreamProvider")
    return str(provider.getClass().getName())


def plan_streams(session: Session, provider: Any, name: str) -> None:
    """Plan the streams of a Java provider, which is of the class `name`, from now on."""
    set_stream_handler(session, provider, name, _Streams(session, name))


class _Streams:
    """Plans streams for Java.

    Args:
        session: A session; others of the same driver share the provider.
        provider: The class of the provider.
    """

    def __init__(self, session: Session, provider: str) -> None:
        self._session, self._provider = session, provider

    def streamSchema(self, session: Any, options: Any, failure: Any) -> Any:  # noqa: N802 - Java calls it
        """Return the columns of a stream; on an error set `failure`."""
        try:
            with during(Operation.STREAM):
                there, _, plan = self._plan(session, options)
                return _java_schema(there, plan)
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            set_failure(error, failure)
            return None

    def streamPlanner(self, session: Any, options: Any, checkpoint: Any, failure: Any) -> Any:  # noqa: N802 - Java calls it
        """Return the planner of a stream; on an error set `failure`."""
        try:
            with during(Operation.STREAM):
                planner = _StreamPlanner(*self._plan(session, options, str(checkpoint)))
                return stream_planner(self._session, self._provider, planner)
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            set_failure(error, failure)
            return None

    def _plan(self, java: Any, options: Any, source: str | None = None) -> tuple[Session, Place, StreamPlan]:
        """Return the stream of a table by the options of a reader.

        Args:
            java: The session.
            options: The options of the reader.
            source: The folder of the source in the checkpoint; None if the query is not started yet.

        Raises:
            InvalidArgumentError: An option is invalid, or the path is missing.
            TableNotFoundError: There is no table.
        """
        from pyspark.sql import SparkSession

        session = Session(SparkSession(self._session.spark._sc, java))
        given = {str(key).lower(): str(value) for key, value in dict(options).items()}
        if "path" not in given:
            message = "readStream.format('delta') needs the path of a table: load(path)"
            raise InvalidArgumentError(message)
        place = place_of(session, given["path"])
        table = DeltaTable(place.uri, storage_options=place.options or None, time_zone=session.zone)
        # Like delta-spark, it ignores other options.
        known = {key: value for key, value in given.items() if is_stream_option(key)}
        return session, place, planned(session, table, stream_options(known, SCHEMA_TRACKING), given, source)


class _StreamPlanner:
    """Plans the batches of one query for Java.

    Args:
        session: The session that reads them.
        place: The table's location.
        plan: The stream.
    """

    def __init__(self, session: Session, place: Place, plan: StreamPlan) -> None:
        self._session, self._plan, self._frames = session, plan, BatchFrames(session, place, plan)

    def schema(self) -> Any:
        """Return the columns of the batches."""
        return _java_schema(self._session, self._plan)

    def nextPosition(self, start: Any, isLimited: bool, failure: Any) -> str | None:  # noqa: N802, N803 - Java calls it
        """Return the end of the batch that begins at `start`; `start` itself if there are no new rows."""
        try:
            begin = self._plan.position_of(str(start))
            end = self._plan.next(begin, limited=isLimited)
            return str(start) if start and end == begin else self._text(end)
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            set_failure(error, failure)
            return None

    def batch(self, start: Any, end: Any, failure: Any) -> Any:
        """Return the Java frame with the rows between two positions."""
        try:
            positions = self._plan.position_of(str(start)), self._plan.position_of(str(end))
            return self._frames.between(*positions)._jdf
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            set_failure(error, failure)
            return None

    def finish(self, end: Any, failure: Any) -> None:
        """Note that the batch that ends at `end` is complete."""
        try:
            if isinstance(self._plan, TrackedPlan):
                with during(Operation.STREAM):
                    self._plan.finish(self._plan.position_of(str(end)))
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            set_failure(error, failure)

    def _text(self, position: dict[str, Any]) -> str:
        """Return a position for the checkpoint, which delta-spark can read unless it counts the files differently."""
        is_same = self._plan.options.exclude is None or not position["at"]["index"]
        return json.dumps({**(offset_of(position) if is_same else {}), **position})

    def stopAtNewest(self, failure: Any) -> None:  # noqa: N802 - Java calls it
        """End the query at the version that is the newest now."""
        try:
            self._plan.stop_at_newest()
        except BaseException as error:  # noqa: BLE001 - Java raises it again
            set_failure(error, failure)


def _java_schema(session: Session, plan: StreamPlan) -> Any:
    return session.spark._jsparkSession.parseDataType(spark_schema(stream_fields(plan)).json())
