"""Scripts for delta-spark, unchanged, in a fresh environment with the distribution of `compat/delta-spark/`.

Nothing but the environment says that deltafast is there: each script runs in a folder and process of its own.
"""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import deltafast

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = pathlib.Path(__file__).parent / "scripts"
EXTENSION, CATALOG = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
#: The script that is run each time; the others belong to the proof tier.
USUAL = ("quickstart",)
CONFS = [
    "--conf",
    f"spark.sql.extensions={EXTENSION}",
    "--conf",
    f"spark.sql.catalog.spark_catalog={CATALOG}",
    "--conf",
    "spark.ui.enabled=false",
]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Give the bin folder of an environment with the distribution and what it requires, and nothing else."""
    return created(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def connect_environment(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Give the bin folder of one that also has what PySpark requires for Spark Connect."""
    return created(tmp_path_factory.mktemp("environment"), "pyspark[connect]")


def created(folder: pathlib.Path, *others: str) -> pathlib.Path:
    """Create an environment with the distribution, with other requirements, and with what they require."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT / "compat" / "delta-spark"]
    subprocess.run(build, check=True, timeout=100)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True, timeout=100)
    python = folder / "venv" / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = pathlib.Path(subprocess.check_output([python, "-c", code], text=True).strip())
    (wheel,) = folder.glob("delta_spark-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", packages, wheel], check=True, timeout=100)
    (installed,) = importlib.metadata.distributions(name="delta-spark", path=[str(packages)])
    for name in required([*(installed.requires or []), *others]) - {"deltafast"}:
        link_files(importlib.metadata.distribution(name), packages)
    (packages / "zz-deltafast.pth").write_text(f"{pathlib.Path(deltafast.__file__).parents[1]}\n")
    return python.parent


def required(requirements: list[str]) -> set[str]:
    """Return the names of the distributions that satisfy requirements, and those that these require."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in {("", name), *((extra, name) for extra in requirement.extras)} - seen:
            seen.add(wanted)
            own = importlib.metadata.distribution(name).requires or []
            waiting += [(Requirement(text), wanted[0]) for text in own]
    return {name for _, name in seen}


def link_files(distribution: importlib.metadata.Distribution, packages: pathlib.Path) -> None:
    """Link what a distribution has at the top of a folder of packages."""
    for name in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
        if not (packages / name).exists():
            (packages / name).symlink_to(distribution.locate_file(name))


def run(environment: pathlib.Path, folder: pathlib.Path, command: list[object], **variables: str) -> str:
    """Run a command in an empty folder and return what it printed."""
    folder.mkdir()
    surroundings = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))
    }
    surroundings |= {"PATH": f"{environment}:{surroundings['PATH']}", "PYSPARK_PYTHON": str(environment / "python")}
    surroundings |= variables
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if " INFO " not in line]
    assert done.returncode == 0, "\n".join(lines)[-4000:]
    return done.stdout + done.stderr


def check_done(printed: str) -> None:
    """Check that a script came to its end, without delta-spark's jar, with which scripts run as well."""
    assert re.search(r"^done", printed, re.MULTILINE)
    assert "io.delta#" not in printed, "Spark has downloaded delta-spark's jar"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(file, id=file.stem, marks=[] if file.stem in USUAL else pytest.mark.proof)
        for file in sorted(SCRIPTS.glob("*.py"))
        if file.stem != "submitted"
    ],
)
def test_a_script_runs_unchanged(environment, tmp_path, script):
    printed = run(environment, tmp_path / "empty", [environment / "python", script, tmp_path])
    check_done(printed)


@pytest.mark.proof
def test_a_script_runs_where_python_reads_no_pth_files(environment, tmp_path):
    """As in a folder of PYTHONPATH: `configure_spark_with_delta_pip` patches PySpark, which is imported already."""
    packages = next(environment.parent.glob("lib/python3*/site-packages"))
    folders = [str(packages), *(packages / "zz-deltafast.pth").read_text().splitlines()]
    command = [environment / "python", "-S", SCRIPTS / "quickstart.py", tmp_path]
    printed = run(environment, tmp_path / "empty", command, PYTHONPATH=os.pathsep.join(folders))
    check_done(printed)


def test_spark_submit_runs_a_script_unchanged(environment, tmp_path):
    import pyspark

    submit = pathlib.Path(pyspark.__file__).parent / "bin" / "spark-submit"
    printed = run(environment, tmp_path / "empty", [submit, *CONFS, SCRIPTS / "submitted.py", tmp_path])
    check_done(printed)
    assert "ClassNotFoundException" not in printed


@pytest.mark.proof
@pytest.mark.parametrize("way", ["defaults", "variable", "coordinates alone"])
def test_settings_are_outside_of_the_script(environment, tmp_path, way):
    command = [environment / "python", SCRIPTS / "submitted.py", tmp_path]
    if way == "defaults":
        settings = "\n".join(setting.replace("=", " ") for setting in CONFS[1::2])
        (tmp_path / "spark-defaults.conf").write_text(settings + "\n")
        printed = run(environment, tmp_path / "empty", command, SPARK_CONF_DIR=str(tmp_path))
    else:
        settings = CONFS if way == "variable" else []
        arguments = ["--packages", "io.delta:delta-spark_2.13:4.0.0", *settings, "pyspark-shell"]
        printed = run(environment, tmp_path / "empty", command, PYSPARK_SUBMIT_ARGS=" ".join(arguments))
    check_done(printed)
    assert "ClassNotFoundException" not in printed


WITH_THE_JAR = f"""
from pyspark.sql import SparkSession

builder = SparkSession.builder.appName("nightly")
builder = builder.config("spark.sql.extensions", "{EXTENSION}").config("spark.sql.catalog.spark_catalog", "{CATALOG}")
spark = builder.getOrCreate()
spark.range(10).write.format("delta").saveAsTable("numbers")
spark.sql("DELETE FROM numbers WHERE id > 6")
assert spark.table("numbers").count() == 7
assert "DeltaCatalog" in spark.conf.get("spark.sql.catalog.spark_catalog")
print("done", spark.sql("DESCRIBE HISTORY numbers").first().engineInfo)
"""


@pytest.mark.proof
@pytest.mark.parametrize("settings", ["of the script", "of the command", "of the server"])
def test_a_session_with_deltas_own_jar_stays_delta_sparks(connect_environment, tmp_path, settings):
    import pyspark

    from oracle.reference import PACKAGE

    script, text, confs = tmp_path / "job.py", WITH_THE_JAR, ["--conf", "spark.ui.enabled=false"]
    if settings == "of the command":
        text, confs = re.sub(r"(?m)^builder = builder.*$", "", text), CONFS
    if settings == "of the server":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        defaults = [setting.replace("=", " ") for setting in CONFS[1::2]]
        defaults += [f"spark.jars.packages {PACKAGE}", f"spark.connect.grpc.binding.port {port}"]
        (tmp_path / "spark-defaults.conf").write_text("\n".join(defaults) + "\n")
        connect = "from pyspark.sql.connect.client.core import DefaultChannelBuilder\n"
        connect += f"DefaultChannelBuilder.default_port = staticmethod(lambda: {port})\n"
        text = connect + re.sub(r"(?m)^builder = builder.*$", "builder = builder.remote('local[2]')", text)
    script.write_text(text)
    submit = pathlib.Path(pyspark.__file__).parent / "bin" / "spark-submit"
    if settings == "of the server":
        command = [connect_environment / "python", script]
        printed = run(connect_environment, tmp_path / "empty", command, SPARK_CONF_DIR=str(tmp_path))
    else:
        printed = run(connect_environment, tmp_path / "empty", [submit, "--packages", PACKAGE, *confs, script])
    assert re.search(r"^done Apache-Spark/.* Delta-Lake/", printed, re.MULTILINE)
    assert re.search(r"the session stays delta-spark's: Delta's own jar is (in|on) this", printed)


def test_packages_of_delta_are_not_resolved():
    from deltafast.spark._delta.start import _without_packages

    given = "--packages io.delta:delta-spark_2.13:4.0.0,org.example:x:1 --conf a=b pyspark-shell"
    assert _without_packages(given) == "--packages org.example:x:1 --conf a=b pyspark-shell"
    assert _without_packages("--packages io.delta:delta-spark_2.13:4.0.0 pyspark-shell") == "pyspark-shell"
    assert _without_packages("--packages=io.delta:delta-spark_2.13:4.0.0,a:b:1 pyspark-shell") == (
        "--packages a:b:1 pyspark-shell"
    )
    by_setting = "--conf spark.jars.packages=io.delta:delta-spark_2.13:4.0.0 --conf 'a=b c' pyspark-shell"
    assert _without_packages(by_setting) == "--conf 'a=b c' pyspark-shell"
    assert _without_packages("-c spark.jars.packages=a:b:1,io.delta:delta-spark_2.13:4.0.0 x") == (
        "-c spark.jars.packages=a:b:1 x"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "from delta.tables import *; DeltaTable.forPath; IdentityGenerator",
        "import delta; delta.tables.DeltaTable; delta.configure_spark_with_delta_pip; delta.exceptions",
        pytest.param("import delta.pip_utils; delta.pip_utils.configure_spark_with_delta_pip", marks=pytest.mark.proof),
        pytest.param("from delta import *; DeltaTable, configure_spark_with_delta_pip", marks=pytest.mark.proof),
        pytest.param("from delta.exceptions import *; ConcurrentAppendException", marks=pytest.mark.proof),
        pytest.param("from delta.exceptions.captured import *; MetadataChangedException", marks=pytest.mark.proof),
        "from delta.connect.tables import DeltaTable",
        "import delta; from delta.version import __version__; assert __version__ == delta.__version__; delta.exceptions.captured",
        pytest.param("from delta.connect import DeltaTable", marks=pytest.mark.proof),
    ],
)
def test_the_modules_exist_before_any_session(request, tmp_path, statement):
    needed = "connect_environment" if "delta.connect" in statement else "environment"
    programs = request.getfixturevalue(needed)
    run(programs, tmp_path / "empty", [programs / "python", "-c", statement])


def test_the_distribution_is_delta_spark(environment, tmp_path):
    code = "import importlib.metadata as m; print(m.version('delta-spark'), m.version('delta_spark'))"
    printed = run(environment, tmp_path / "empty", [environment / "python", "-c", code]).split()
    source = (ROOT / "python/deltafast/spark/_delta/served/version.py").read_text("utf-8")
    version = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert version is not None
    assert printed == [version[1]] * 2
    from oracle.reference import PACKAGE

    assert PACKAGE.rpartition(":")[2] == version[1], "the release that the tests compare with"


def test_python_starts_without_importing_anything(environment, tmp_path):
    code = "import sys; print(sorted(m for m in sys.modules if m.split('.')[0] in ('deltafast', 'pyspark', 'pyarrow', 'typing')))"
    assert run(environment, tmp_path / "empty", [environment / "python", "-c", code]).strip() == "[]"


def test_the_builder_keeps_what_is_not_deltas():
    from deltafast.spark._delta.start import without_delta

    given = {
        "spark.sql.extensions": f"a.B, {EXTENSION},c.D",
        "spark.sql.catalog.spark_catalog": CATALOG,
        "spark.sql.catalog.other": "org.example.Catalog",
        "spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0,org.example:x:1,io.delta:delta-storage:4.0.0",
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.deltafast.enabled": "true",
        "spark.app.name": "",
    }
    assert without_delta(given) == {
        "spark.sql.extensions": "a.B,c.D",
        "spark.sql.catalog.other": "org.example.Catalog",
        "spark.jars.packages": "org.example:x:1",
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.app.name": "",
    }
    assert without_delta({"spark.sql.extensions": EXTENSION}) == {}
    assert without_delta({"spark.jars.packages": "io.delta:delta-spark_4.0_2.13:4.0.0"}) == {}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("4.4.0", "4.4.0"),
        ("4.4.0.dev0", "4.4.0-SNAPSHOT"),
        ("4.4.0rc1", "4.4.0-rc1"),
        ("4.4.0rc12.dev3", "4.4.0-rc12-SNAPSHOT"),
        ("4.4.0.post1", "4.4.0.post1"),
    ],
)
def test_the_version_of_a_maven_artifact(version, expected):
    from deltafast.spark._delta.builder import maven_version

    assert maven_version(version) == expected


def test_only_a_builder_is_configured():
    from deltafast.spark._delta.builder import configure_spark_with_delta_pip

    with pytest.raises(TypeError, match="takes a SparkSession builder, not a value of type str"):
        configure_spark_with_delta_pip("local")
