/**
 * What TCP itself moves between two processes: one sends a mapped file, a block with each call, the other receives it
 * into a ring of four slots and reads a word of each page. BYTES: of the file's beginning, sent in each pass.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench.h"
#include "pages.h"

enum { SLOTS = 4 };

struct plan {
    size_t block, bytes, passes;
};

static int accepted(int listener, const struct sockaddr_in *address) {
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (const struct sockaddr *)address, sizeof *address) != 0 || listen(listener, 1) != 0)
        die("cannot listen: %m");
    puts("{\"listens\": true}");
    fflush(stdout);
    const int fd = accept(listener, NULL, NULL);
    if (fd < 0) die("nobody has connected: %m");
    return fd;
}

static void receive(const struct plan *plan, int fd) {
    uint8_t *slots = malloc(SLOTS * plan->block);
    if (slots == NULL) die("no memory for %zu bytes", SLOTS * plan->block);
    size_t turn = 0;
    for (size_t pass = 0; pass < plan->passes; pass++) {
        uint64_t sum = 0;
        for (size_t at = 0; at < plan->bytes; at += plan->block, turn++) {
            uint8_t *slot = slots + turn % SLOTS * plan->block;
            for (ssize_t got = 0, more; (size_t)got < plan->block; got += more)
                if ((more = recv(fd, slot + got, plan->block - (size_t)got, 0)) <= 0) die("the sender has ended: %m");
            sum += sum_of_pages(slot, plan->block);
        }
        pass_answer(&(struct tally){.bytes = plan->bytes}, sum);
    }
    free(slots);
}

static void send_all(const struct plan *plan, int fd, const char *path) {
    uint8_t *mapped = mmap(NULL, plan->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, open(path, O_RDONLY), 0);
    if (mapped == MAP_FAILED) die("%s cannot be mapped: %m", path);
    for (size_t pass = 0; pass < plan->passes; pass++)
        for (size_t at = 0; at < plan->bytes; at += plan->block)
            for (struct iovec part = {mapped + at, plan->block}; part.iov_len > 0;) {
                const ssize_t sent = writev(fd, &part, 1);
                if (sent <= 0) die("the receiver has ended: %m");
                part.iov_base = (uint8_t *)part.iov_base + sent;
                part.iov_len -= (size_t)sent;
            }
}

int main(int argc, char **argv) {
    messages_from("bench-tcp");
    if (argc < 7) die("usage: bench-tcp receive|send ADDRESS PORT BLOCK BYTES PASSES [FILE]");
    const struct plan plan = {strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10), strtoull(argv[6], NULL, 10)};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3]))};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) die("no socket for %s: %m", argv[2]);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (argc == 7) {
        receive(&plan, accepted(fd, &address));
    } else {
        if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) die("cannot connect: %m");
        send_all(&plan, fd, argv[7]);
    }
    return 0;
}
