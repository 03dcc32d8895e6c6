/** Proofs that both ends of a connection know the key of a run (docs/design/hub.md). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_BYTES 32

/** SHA-256 (FIPS 180-4). */
void supply__sha256(const void *data, size_t bytes, uint8_t digest[DIGEST_BYTES]);

/** HMAC-SHA256 (RFC 2104) of these parts, one after the other. count: at most PROOF_PARTS_MAX. */
#define PROOF_PARTS_MAX 4
struct proof_part {
    const void *data;
    size_t bytes;
};
void supply__proof(const uint8_t key[DIGEST_BYTES], const struct proof_part *parts, int count,
                   uint8_t proof[DIGEST_BYTES]);

/** Whether two digests are the same, in a time that does not say where they differ. */
bool supply__digests_equal(const uint8_t *one, const uint8_t *other);
