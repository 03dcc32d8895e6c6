/** SHA-256 and HMAC for short messages. They are here because a program that links libsupply may have no other library.
 */
#include "net/proof.h"

#include <string.h>

enum { BLOCK = 64 };

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[BLOCK];
};

static uint32_t rotated(uint32_t x, int by) { return x >> by | x << (32 - by); }

static uint32_t read_big(const uint8_t *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void write_big(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void mix_block(uint32_t state[8], const uint8_t block[BLOCK]) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++) w[i] = read_big(block + (ptrdiff_t)4 * i);
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) +
               (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
    }
    uint32_t v[8];
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t one =
            v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
        const uint32_t two =
            (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

static struct sha256 sha256_begin(void) {
    return (struct sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static void sha256_add(struct sha256 *sha, const void *data, size_t bytes) {
    const uint8_t *from = data;
    for (size_t i = 0; i < bytes; i++) {
        sha->block[sha->bytes++ % BLOCK] = from[i];
        if (sha->bytes % BLOCK == 0) mix_block(sha->state, sha->block);
    }
}

static void sha256_end(struct sha256 *sha, uint8_t digest[DIGEST_BYTES]) {
    const uint64_t bits = sha->bytes * 8;
    uint8_t length[8];
    write_big(length, (uint32_t)(bits >> 32));
    write_big(length + 4, (uint32_t)bits);
    sha256_add(sha, "\x80", 1);
    while (sha->bytes % BLOCK != BLOCK - sizeof length) sha256_add(sha, "", 1);
    sha256_add(sha, length, sizeof length);
    for (int i = 0; i < 8; i++) write_big(digest + (ptrdiff_t)4 * i, sha->state[i]);
}

void supply__sha256(const void *data, size_t bytes, uint8_t digest[DIGEST_BYTES]) {
    struct sha256 sha = sha256_begin();
    sha256_add(&sha, data, bytes);
    sha256_end(&sha, digest);
}

static struct sha256 begin_with(const uint8_t key[DIGEST_BYTES], uint8_t pad) {
    struct sha256 sha = sha256_begin();
    for (int i = 0; i < BLOCK; i++) {
        const uint8_t byte = (uint8_t)((i < DIGEST_BYTES ? key[i] : 0) ^ pad);
        sha256_add(&sha, &byte, 1);
    }
    return sha;
}

void supply__proof(const uint8_t key[DIGEST_BYTES], const struct proof_part *parts, int count,
                   uint8_t proof[DIGEST_BYTES]) {
    struct sha256 inner = begin_with(key, 0x36), outer = begin_with(key, 0x5c);
    for (int i = 0; i < count; i++) sha256_add(&inner, parts[i].data, parts[i].bytes);
    sha256_end(&inner, proof);
    sha256_add(&outer, proof, DIGEST_BYTES);
    sha256_end(&outer, proof);
}

bool supply__digests_equal(const uint8_t *one, const uint8_t *other) {
    uint8_t differs = 0;
    for (int i = 0; i < DIGEST_BYTES; i++) differs |= one[i] ^ other[i];
    return differs == 0;
}
