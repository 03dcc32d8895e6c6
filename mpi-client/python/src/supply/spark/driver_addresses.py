"""How ranks reach the driver."""

from __future__ import annotations

from typing import Any


def driver_addresses(context: Any) -> tuple[str, str]:
    """Of a SparkContext: the address to listen on, and the driver's name on the nodes."""
    if context._jsc.sc().isLocal():
        return "127.0.0.1", "127.0.0.1"
    conf = context.getConf()
    host = conf.get("spark.driver.host")
    return conf.get("spark.driver.bindAddress", host), host
