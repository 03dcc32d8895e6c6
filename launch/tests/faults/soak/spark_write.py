"""A DataFrame that Spark supplies in the background."""

import concurrent.futures
import threading


class Write:
    def __init__(self, df, **options):
        writer = df.write.format("supply").mode("append").options(**options)
        self._end = concurrent.futures.Future()
        threading.Thread(target=self._save, args=[writer], daemon=True).start()

    def _save(self, writer):
        try:
            writer.save()
            self._end.set_result(None)
        except Exception as error:
            java = getattr(error, "java_exception", None)
            self._end.set_result(str(error) if java is None else java.getMessage())

    def is_over(self):
        return self._end.done()

    def failure(self, timeout=None):
        """Waits for the end. The message of Spark's failure, or None."""
        return self._end.result(timeout)
