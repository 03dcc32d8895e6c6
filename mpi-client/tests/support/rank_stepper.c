/**
 * A rank that does one step at a time, for tests of the Scala side. It reads a command from each line of stdin, and
 * writes one line to stdout for each. It uses libsupply itself.
 *
 *     group NAME       for the next open
 *     exchange         for the next open: the program says that it exchanges its elements
 *     reader I N RING_FILE   for the next open: it is reader I of N of the ring in that mapped file
 *     open MAPPED_FILE REQUEST_PIPE NOTIFICATION_PIPE TIMEOUT RING_BYTES BLOCK_BYTES RANK [POSITION]
 *     next             → OK sequence epoch partition first_element element_count | END_OF_EPOCH epoch | END_OF_DATA
 *     datum I          → OK label channels height width encoded key_bytes data_bytes sum, of the latest block
 *     release SEQUENCE
 *     take             → OK label, of the next Datum | END_OF_EPOCH epoch | END_OF_DATA
 *     position         → OK text
 *     counts           → OK elements steps | AGAIN
 *     result NAME      begins a result with the columns id (l) and label (u)
 *     rows FIRST COUNT writes rows with the ids from FIRST on, and the id's digits as label
 *     seal | reject TEXT  ends the result
 *     close | abort TEXT
 *
 * On any failure it writes: ERROR status text
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supply_datum.h"
#include "supply_result.h"

static supply_t *supply;
static supply_result_t *result;
static supply_block_t block;

static void answer(supply_status_t status) {
    if (status < 0)
        printf("ERROR %s %s\n", supply_status_name(status), supply_error(supply));
    else
        puts("OK");
}

static char group[256];
static bool exchange;

static void set_group(const char *name) {
    snprintf(group, sizeof group, "%s", name);
    puts("OK");
}

static void set_exchange(void) {
    exchange = true;
    puts("OK");
}

static int reader, readers;
static char ring_file[4096];

static void set_reader(const char *arguments) {
    puts(sscanf(arguments, "%d %d %4095s", &reader, &readers, ring_file) == 3 ? "OK" : "ERROR usage");
}

static void open_pair(char *arguments) {
    static char mapped[4096], request[4096], notification[4096], text[SUPPLY_POSITION_TEXT_BYTES];
    static supply_position_t position;
    supply_options_t options;
    supply_options_init(&options);
    int read = sscanf(arguments, "%4095s %4095s %4095s %lf %zu %zu %d %159s", mapped, request, notification,
                      &options.timeout, &options.ring_bytes, &options.block_bytes, &options.rank, text);
    if (read == 8 && supply_position_from_text(&position, text) == SUPPLY_OK)
        options.position = &position;
    else if (read != 7) {
        puts("ERROR usage");
        return;
    }
    options.mapped_file = mapped;
    options.request_pipe = request;
    options.notification_pipe = notification;
    if (group[0] != '\0') options.group = group;
    options.exchange = exchange;
    options.reader = reader;
    options.readers = readers;
    options.ring_file = ring_file;
    answer(supply_open(&supply, &options));
}

static void show_end(supply_status_t status, uint32_t epoch) {
    if (status == SUPPLY_END_OF_EPOCH)
        printf("END_OF_EPOCH %u\n", epoch);
    else if (status == SUPPLY_END_OF_DATA)
        puts("END_OF_DATA");
    else
        answer(status);
}

static void take_datum(void) {
    supply_datum_t datum;
    supply_status_t status = supply_next_datum(supply, &datum);
    if (status == SUPPLY_OK)
        printf("OK %d\n", datum.label);
    else
        show_end(status, datum.epoch);
}

static void show_position(void) {
    supply_position_t position;
    char text[SUPPLY_POSITION_TEXT_BYTES];
    supply_status_t status = supply_position_save(supply, &position);
    if (status != SUPPLY_OK) {
        answer(status);
        return;
    }
    supply_position_to_text(&position, text, sizeof text);
    printf("OK %s\n", text);
}

static void show_counts(void) {
    supply_counts_t counts;
    supply_status_t status = supply_counts(supply, &counts);
    if (status == SUPPLY_OK)
        printf("OK %llu %llu\n", (unsigned long long)counts.epoch_elements, (unsigned long long)counts.epoch_steps);
    else if (status == SUPPLY_AGAIN)
        puts("AGAIN");
    else
        answer(status);
}

static void next_block(void) {
    supply_status_t status = supply_next(supply, &block);
    if (status == SUPPLY_OK)
        printf("OK %llu %u %u %llu %u\n", (unsigned long long)block.sequence, block.epoch, block.partition,
               (unsigned long long)block.first_element, block.element_count);
    else
        show_end(status, block.epoch);
}

static void show_datum(const char *arguments) {
    supply_datum_t datum;
    supply_status_t status = supply_datum(supply, &block, (uint32_t)strtoul(arguments, NULL, 10), &datum);
    if (status != SUPPLY_OK) {
        answer(status);
        return;
    }
    unsigned long sum = 0;
    for (size_t i = 0; i < datum.data_bytes; i++) sum += ((const unsigned char *)datum.data)[i];
    printf("OK %d %d %d %d %d %zu %zu %lu\n", datum.label, datum.channels, datum.height, datum.width, datum.encoded,
           datum.key_bytes, datum.data_bytes, sum);
}

static void release(const char *arguments) {
    supply_block_t held = {.sequence = strtoull(arguments, NULL, 10)};
    answer(supply_release(supply, &held));
}

static void answer_result(supply_status_t status) {
    if (status < 0)
        printf("ERROR %s %s\n", supply_status_name(status), supply_result_error(result));
    else
        puts("OK");
}

static void begin_result(const char *name) {
    static const supply_field_t fields[] = {{.name = "id", .format = "l"}, {.name = "label", .format = "u"}};
    answer_result(supply_result_open(&result, supply, name, fields, 2));
}

static void write_rows(const char *arguments) {
    long long first;
    int count;
    if (sscanf(arguments, "%lld %d", &first, &count) != 2) {
        puts("ERROR usage");
        return;
    }
    supply_status_t status = SUPPLY_OK;
    for (long long id = first; id < first + count && status == SUPPLY_OK; id++) {
        char digits[24];
        const int32_t offsets[] = {0, snprintf(digits, sizeof digits, "%lld", id)};
        const supply_column_t columns[] = {
            {.element_count = 1, .data = &id, .data_bytes = sizeof id},
            {.element_count = 1, .offsets = offsets, .data = digits, .data_bytes = (size_t)offsets[1]}};
        status = supply_result_write(result, columns, 2);
    }
    answer_result(status);
}

static void seal_result(void) {
    const supply_status_t status = supply_result_seal(result);
    answer_result(status);
    if (status == SUPPLY_OK) result = NULL;
}

static void reject_result(const char *reason) {
    answer(supply_result_abort(result, reason));
    result = NULL;
}

int main(void) {
    char line[16384];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *arguments = line + strcspn(line, " ");
        if (*arguments != '\0') *arguments++ = '\0';
        if (strcmp(line, "group") == 0)
            set_group(arguments);
        else if (strcmp(line, "exchange") == 0)
            set_exchange();
        else if (strcmp(line, "reader") == 0)
            set_reader(arguments);
        else if (strcmp(line, "open") == 0)
            open_pair(arguments);
        else if (strcmp(line, "next") == 0)
            next_block();
        else if (strcmp(line, "take") == 0)
            take_datum();
        else if (strcmp(line, "position") == 0)
            show_position();
        else if (strcmp(line, "counts") == 0)
            show_counts();
        else if (strcmp(line, "datum") == 0)
            show_datum(arguments);
        else if (strcmp(line, "release") == 0)
            release(arguments);
        else if (strcmp(line, "result") == 0)
            begin_result(arguments);
        else if (strcmp(line, "rows") == 0)
            write_rows(arguments);
        else if (strcmp(line, "seal") == 0)
            seal_result();
        else if (strcmp(line, "reject") == 0)
            reject_result(arguments);
        else if (strcmp(line, "abort") == 0) {
            supply_abort(supply, arguments);
            supply = NULL;
            puts("OK");
        } else if (strcmp(line, "close") == 0) {
            supply_close(supply);
            supply = NULL;
            puts("OK");
        } else
            puts("ERROR unknown command");
    }
    supply_close(supply);
    return 0;
}
