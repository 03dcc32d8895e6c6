"""A link between processes that are threads: messages of feeders, without MPI."""

import threading


class Post:
    """The messages on their way, by sender, receiver and tag, and what all processes have sent to all."""

    def __init__(self, processes):
        self.processes = processes
        self.messages = {}
        self.gathered = {}
        self.lock = threading.Lock()


class ThreadLink:
    def __init__(self, post, process):
        self.process = process
        self.processes = post.processes
        self.is_closed = False
        self._post = post
        self._operations = []

    def send(self, to, tag, buffer):
        message = [bytes(buffer), False]
        with self._post.lock:
            self._post.messages.setdefault((self.process, to, tag), []).append(message)
        return self._begin(lambda: message[1])

    def receive(self, source, tag, buffer):
        def arrived():
            waiting = self._post.messages.get((source, self.process, tag))
            if not waiting:
                return False
            message = waiting.pop(0)
            buffer[: len(message[0])] = message[0]
            message[1] = True
            return True

        return self._begin(arrived)

    def allgather(self, send, receive):
        with self._post.lock:
            self._post.gathered[self.process] = bytes(send)

        def gathered():
            if len(self._post.gathered) < self.processes:
                return False
            receive[:] = b"".join(self._post.gathered[process] for process in range(self.processes))
            return True

        return self._begin(gathered)

    def test(self, operation):
        with self._post.lock:
            if self._operations[operation] is not None and self._operations[operation]():
                self._operations[operation] = None
        return self._operations[operation] is None

    def close(self):
        self.is_closed = True

    def _begin(self, is_complete):
        self._operations.append(is_complete)
        return len(self._operations) - 1
