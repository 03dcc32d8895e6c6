"""The Supplier's jar in the JVM of a session of Spark Classic that runs already."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from supply.errors import RunError

# A file of the jar, and the classes that Spark loads when it looks for any data source.
_IN_JAR = "supply/built-for.properties"
_REGISTERED = ("supply.api.SupplyDataSource", "supply.api.LmdbDataSource")


def has_jar(jvm: Any) -> bool:
    """Whether all threads of the driver find the jar."""
    return _of_spark(jvm).getResource(_IN_JAR) is not None


def add_jar(spark: Any, jar: str) -> None:
    """Adds the jar to a session that has begun without it.

    ADD JAR has a class loader of its own. Other threads do not know it, and in local mode the tasks have one, too.
    """
    context = spark.sparkContext
    of_session = spark._jsparkSession.sharedState().jarClassLoader()
    if any(_has_made(context, of_session, name) for name in _REGISTERED):
        raise RunError(
            "this session got the Supplier's jar by ADD JAR, and Spark has used it since, so that it cannot be "
            "added for all threads: restart Python, and call supply.spark.session() in place of ADD JAR"
        )
    try:
        _of_spark(context._jvm).addURL(context._jvm.java.io.File(jar).toURI().toURL())
    except Py4JError as error:
        raise RunError(
            "this session does not have the Supplier's jar, and its driver takes none while it runs: restart "
            "Python, and make its first session with supply.spark.session(), or set spark.jars to "
            "supply.spark.jars()"
        ) from error
    # For the executors.
    context._jsc.addJar(jar)


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
