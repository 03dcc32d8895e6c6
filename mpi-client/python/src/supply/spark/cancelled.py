"""A call into the JVM that Ctrl-C ends, and whose errors are SupplierErrors."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from supply.errors import SupplierError


@contextlib.contextmanager
def cancelled_on_interrupt(context: Any) -> Iterator[None]:
    """The jobs that the block starts end with it. Raises SupplierError with the text of the product's own errors."""
    tag = f"supply-{uuid.uuid4().hex[:12]}"
    context.addJobTag(tag)
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(Py4JError):
            context.cancelJobsWithTag(tag)
        raise
    except Exception as error:
        java = getattr(error, "java_exception", None)
        if java is None and not isinstance(error, Py4JJavaError):
            raise
        if java is not None and java.getClass().getName().startswith("supply."):
            raise SupplierError(java.getMessage()) from error
        raise
    finally:
        with contextlib.suppress(Py4JError):
            context.removeJobTag(tag)
