/**
 * The contract's structures, as proto/layout.tsv has them. CMake turns every row of that table into a
 * _Static_assert over this header (cmake/LayoutAsserts.cmake), so that a difference does not compile.
 */
#ifndef SUPPLY_LAYOUT_H
#define SUPPLY_LAYOUT_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The contract is little-endian; libsupply does not run on this machine."
#endif

#define MAGIC "SUPPLY\r\n"

#define VERSION_MAJOR 1
#define VERSION_MINOR 0
#define BYTE_ORDER_MARK 0x01020304
#define SCHEMA_OFFSET 4096
#define SCHEMA_COLUMNS_MAX 320
#define RING_OFFSET 65536
#define BLOCK_BYTES_UNIT 4096
#define BLOCK_BYTES_MAX 1073741824
#define BLOCK_COUNT_MIN 2
#define BUFFER_ALIGNMENT 64
#define RANK_LOCK_BYTE 0
#define TASK_LOCK_BYTE 1
#define REMOVER_LOCK_BYTE 2
#define NOTIFICATION_BLOCK 1
#define NOTIFICATION_END_OF_EPOCH 2
#define NOTIFICATION_END_OF_DATA 3
#define NOTIFICATION_FAILURE 4
#define REQUEST_ATTACH 1
#define REQUEST_RELEASE 2
#define REQUEST_STOP 3
#define COLUMN_NULLABLE 1

/** Kinds from this one on may be added by a minor version; a reader skips them. */
#define KIND_OPTIONAL_MIN 256

struct mapped_file_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t generation;
    uint64_t file_bytes;
    uint64_t ring_offset;
    uint64_t block_bytes;
    uint32_t block_count;
    uint32_t rank_pid;
    int32_t rank;
    int32_t local_rank;
    uint64_t released;
    uint32_t start_epoch;
    uint32_t start_inside;
    uint32_t start_partition;
    uint8_t unused_84[4];
    uint64_t start_element;
    uint64_t start_plan;
    uint64_t acknowledged;
    uint8_t unused_112[16];
    uint64_t published;
    uint32_t task_pid;
    uint32_t task_attempt;
    uint32_t schema_columns;
    uint8_t unused_148[4];
    uint64_t plan;
    uint32_t end_seen;
    uint8_t unused_164[4];
    uint64_t resident_first;
    uint64_t resident_count;
    uint64_t run;
    uint8_t unused_192[64];
    char task_failure[1024];
    char rank_failure[1024];
    uint8_t unused_2304[1792];
};

struct schema_entry {
    char name[128];
    char format[32];
    char child_format[16];
    uint32_t flags;
    uint8_t unused_180[12];
};

struct notification {
    uint64_t generation;
    uint32_t kind;
    uint32_t element_count;
    uint64_t sequence;
    uint32_t epoch;
    uint32_t partition;
    uint64_t first_element;
    uint64_t offset;
    uint64_t size;
    uint64_t reserved;
};

struct request {
    uint64_t generation;
    uint32_t kind;
    uint32_t reserved;
};

struct block_header {
    struct notification notification;
    uint32_t column_count;
    uint8_t unused_68[4];
    uint64_t elements_before;
    uint64_t bytes_before;
    uint64_t replay_sequence;
    uint64_t replay_block;
    uint32_t replay_epoch;
    uint8_t unused_108[4];
    uint64_t replay_elements_before;
    uint64_t replay_bytes_before;
};

struct block_column {
    uint32_t validity_offset;
    uint32_t validity_bytes;
    uint32_t offsets_offset;
    uint32_t offsets_bytes;
    uint32_t data_offset;
    uint32_t data_bytes;
    uint32_t null_count;
    uint32_t reserved;
};

#endif
