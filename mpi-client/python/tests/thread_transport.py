"""A transport between ranks that are threads of this process."""

import threading


class Mail:
    """The messages between all ranks: of each operation, from a rank to a rank."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.messages = {}
        self.lock = threading.Lock()


class ThreadTransport:
    def __init__(self, mail, rank):
        self.rank = rank
        self.ranks = mail.ranks
        self.any_thread = True
        self.is_closed = False
        self._mail = mail
        self._operation = 0
        self._receive = []

    def allgather(self, send, receive):
        return self._begin([send] * self.ranks, receive, _equal_parts(receive, self.ranks))

    def alltoall(self, send, receive):
        return self._begin(_pieces(send, _equal_parts(send, self.ranks)), receive, _equal_parts(receive, self.ranks))

    def alltoallv(self, send, send_parts, receive, receive_parts):
        return self._begin(_pieces(send, send_parts), receive, receive_parts)

    def test(self, operation):
        keys = [(operation, sender, self.rank) for sender in range(self.ranks)]
        with self._mail.lock:
            if not all(key in self._mail.messages for key in keys):
                return False
            received = [self._mail.messages.pop(key) for key in keys]
        for place, message in zip(self._receive, received):
            place[:] = message
        return True

    def close(self):
        self.is_closed = True

    def _begin(self, pieces, receive, receive_parts):
        self._operation += 1
        self._receive = _pieces(receive, receive_parts)
        with self._mail.lock:
            for receiver, piece in enumerate(pieces):
                self._mail.messages[self._operation, self.rank, receiver] = bytes(piece)
        return self._operation


def _pieces(buffer, parts):
    return [buffer[offset : offset + size] for offset, size in parts]


def _equal_parts(buffer, ranks):
    size = len(buffer) // ranks
    return [(rank * size, size) for rank in range(ranks)]
