"""The Supplier's jar, and how a server of Spark Connect that runs already gets it from a client."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import spark_supplier
from spark_supplier.driver.class_loader import jars
from spark_supplier.errors import RunError

if TYPE_CHECKING:
    from spark_supplier.driver.sessions import Session

# Sessions that have the jar of this client.
_given: weakref.WeakSet[Any] = weakref.WeakSet()
_giving = threading.Lock()


def start_with(what: str) -> RunError:
    """what: is wrong with the server."""
    return RunError(
        f"the server of Spark Connect {what}: its administrator must start it with --jars (or spark.jars), and the "
        "path of spark_supplier.jars()"
    )


def give(session: Session) -> None:
    """Sends the jar to the server, for this session. Once."""
    with _giving:
        if session.spark in _given:
            return
        try:
            session.spark.addArtifacts(jars())
        except Exception as error:
            refusal = session.failure(error).text
            raise start_with(f"does not have the Supplier's jar, and refuses it ({refusal})") from error
        _given.add(session.spark)


def check(session: Session, about: Mapping[str, Any]) -> None:
    """Refuses a server with another jar than this client's. about: what the jar there says.

    If a client has brought the jar, the driver has it for all, and executors for that client's session: then this one
    gets it, too.
    """
    if about.get("artifact"):
        raise start_with("has the Supplier's jar by addArtifacts, and its driver takes none while it runs")
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
    give(session)
