"""The key of a run, on which client and driver agree, so that Spark has none to show (docs/design/hub.md)."""

from __future__ import annotations

import hashlib
import hmac
import secrets

# ffdhe2048 of RFC 7919.
_PRIME = int(
    "ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce249b3ef9"
    "7d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3b557135e7f57c935"
    "984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182b324fb61d108a94bb2c8e3fb"
    "b96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d709e02fce1cdf7e2ecc03404cd28342f61"
    "9172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc2ec22005c58ef1837d1683b2c6f34a26c1b2effa"
    "886b423861285c97ffffffffffffffff",
    16,
)
_SECRET_BITS = 512


class KeyAgreement:
    """A client's part in Diffie-Hellman. key: of runs or of ranks, when the JVM has answered."""

    key = b""

    def __init__(self) -> None:
        self._secret = secrets.randbits(_SECRET_BITS)
        self.public = f"{pow(2, self._secret, _PRIME):x}"

    def agree(self, theirs: str) -> None:
        """theirs: the number that the JVM has answered."""
        shared = pow(int(theirs, 16), self._secret, _PRIME)
        self.key = hashlib.sha256(shared.to_bytes((_PRIME.bit_length() + 7) // 8, "big")).digest()


def proof(key: bytes, name: str, text: str) -> str:
    """The option proof of a call with these arguments."""
    digests = hashlib.sha256(name.encode()).digest() + hashlib.sha256(text.encode()).digest()
    return hmac.new(key, digests, hashlib.sha256).hexdigest()
