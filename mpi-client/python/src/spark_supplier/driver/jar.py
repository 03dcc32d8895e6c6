"""The Supplier's jar, and how a session that runs already gets it: of Spark Classic, and a server of Spark Connect."""

from __future__ import annotations

import hashlib
import os
import pathlib
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyspark
from py4j.protocol import Py4JError

import spark_supplier
from spark_supplier.errors import RunError

if TYPE_CHECKING:
    from spark_supplier.driver.sessions import Session

# A file of the jar, and the classes that Spark loads when it looks for any data source.
_IN_JAR = "supply/built-for.properties"
_REGISTERED = ("supply.api.SupplyDataSource", "supply.lmdb.LmdbDataSource")


def jars() -> str:
    """The path of the Supplier's jar for the installed PySpark: for SparkSession.builder.config("spark.jars", jars()).

    SUPPLY_JAR of the environment names another jar. Otherwise it is one of those in this package, which has one for
    each major version: that of Spark 4.1 is for all of Spark 4, that of 3.5 for Spark 3. Raises RunError if there
    is none for this PySpark.
    """
    named = os.environ.get("SUPPLY_JAR")
    if named:
        if pathlib.Path(named).is_file():
            return named
        raise RunError(f"SUPPLY_JAR names {named}, which is not a file: set it to spark-supplier.jar, or unset it")
    folder = pathlib.Path(spark_supplier.__file__).parent / "jars"
    major = pyspark.__version__.partition(".")[0]
    found = sorted(folder.glob("spark-*/spark-supplier.jar"))
    for jar in found:
        if jar.parent.name.startswith(f"spark-{major}."):
            return str(jar)
    present = " and ".join(jar.parent.name[len("spark-") :] for jar in found)
    raise RunError(
        f"this package has no jar for PySpark {pyspark.__version__} ({folder}): install "
        + (f"a PySpark of {present}" if present else "a wheel with the jars (in a checkout, make python)")
        + ", or set SUPPLY_JAR to the jar"
    )


# URIs of jars that add_jar() has given to the driver's JVM.
_added: list[str] = []


def has_jar(context: Any) -> bool:
    """Whether all threads of the driver find the jar, and its executors do.

    What add_jar() has given to the JVM, a later context there has, too, but not that context's executors.
    """
    if not _is_in(context._jvm):
        return False
    spark = context._jsc.sc()
    return not _added or spark.isLocal() or any(_name(uri) in spark.listJars().mkString("\n") for uri in _added)


def _is_in(jvm: Any) -> bool:
    return _of_spark(jvm).getResource(_IN_JAR) is not None


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def add_jar(spark: Any, jar: str) -> None:
    """Adds the jar to a session that has begun without it.

    ADD JAR has a class loader of its own. Other threads do not know it, and in local mode the tasks have one, too.
    """
    context = spark.sparkContext
    uri = pathlib.Path(jar).absolute().as_uri()
    if not _is_in(context._jvm):
        _add_to_driver(spark, uri)
        _added.append(uri)
    # For the executors.
    context._jsc.addJar(uri)


def _add_to_driver(spark: Any, uri: str) -> None:
    context = spark.sparkContext
    of_session = spark._jsparkSession.sharedState().jarClassLoader()
    if any(_has_made(context, of_session, name) for name in _REGISTERED):
        raise RunError(
            "this session got the Supplier's jar by ADD JAR, and Spark has used it since, so that it cannot be "
            "added for all threads: restart Python, and call spark_supplier.session() in place of ADD JAR"
        )
    try:
        _of_spark(context._jvm).addURL(context._jvm.java.net.URI(uri).toURL())
    except Py4JError as error:
        raise RunError(
            "this session does not have the Supplier's jar, and its driver takes none while it runs: restart "
            "Python, and make its first session with spark_supplier.session(), or set spark.jars to "
            "spark_supplier.jars()"
        ) from error


def _of_spark(jvm: Any) -> Any:
    """The class loader of Spark's own threads: of this thread's, the outermost that takes jars."""
    loader = found = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    while loader is not None:
        if loader.getClass().getName().startswith("org.apache.spark."):
            found = loader
        loader = loader.getParent()
    return found


def _has_made(context: Any, loader: Any, name: str) -> bool:
    """Whether this loader, and no other one, has made the class."""
    jvm, gateway = context._jvm, context._gateway
    texts = gateway.new_array(jvm.java.lang.Class, 1)
    texts[0] = jvm.java.lang.Class.forName("java.lang.String")
    names = gateway.new_array(jvm.java.lang.Object, 1)
    names[0] = name
    find = jvm.java.lang.Class.forName("java.lang.ClassLoader").getDeclaredMethod("findLoadedClass", texts)
    # Spark opens this package of Java to itself.
    find.setAccessible(True)
    return find.invoke(loader, names) is not None


# Sessions that have the jar of this client.
_given: weakref.WeakSet[Any] = weakref.WeakSet()
_giving = threading.Lock()


def server_error(what: str) -> RunError:
    """what: is wrong with the server."""
    return RunError(
        f"the server of Spark Connect {what}: its administrator must start it with --jars (or spark.jars), and the "
        "path of spark_supplier.jars()"
    )


def give_jar(session: Session) -> None:
    """Sends the jar to the server, for this session. Once."""
    with _giving:
        if session.spark in _given:
            return
        try:
            session.spark.addArtifacts(jars())
        except Exception as error:
            refusal = session.failure(error).text
            raise server_error(f"does not have the Supplier's jar, and refuses it ({refusal})") from error
        _given.add(session.spark)


def check_server(session: Session, about: Mapping[str, Any]) -> None:
    """Refuses a server with another jar than this client's. about: what the jar there says.

    If a client has brought the jar, the driver has it for all, and executors for that client's session: then this one
    gets it, too.
    """
    if about.get("artifact"):
        raise server_error("has the Supplier's jar by addArtifacts, and its driver takes none while it runs")
    of_jar = about.get("version")
    if of_jar != spark_supplier.__version__:
        raise RunError(
            f"the server of Spark Connect has the Supplier's jar of version {of_jar}, and this package is "
            f"{spark_supplier.__version__}: install the package of that version, or give the server the jar of this one"
        )
    of_driver = about.get("digest")
    if of_driver is None:
        return
    with open(jars(), "rb") as jar:
        own = hashlib.sha256(jar.read()).hexdigest()
    if own != of_driver:
        raise RunError(
            "the server of Spark Connect has another build of the Supplier's jar of this version, which a client has "
            "brought: install the same package, or let the administrator start the server again"
        )
    give_jar(session)
