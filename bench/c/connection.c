#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "messages.h"

static int listen_to_sender(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        die("no socket on the loopback: %m");
    printf("{\"port\": %d}\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int accept_sender(void) {
    const int listener = listen_to_sender(), on = 1;
    const int connected = accept(listener, NULL, NULL);
    if (connected < 0) die("accept: %m");
    close(listener);
    if (setsockopt(connected, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) die("TCP_NODELAY: %m");
    return connected;
}

size_t receive_some(int socket, void *to, size_t bytes) {
    ssize_t received;
    do received = recv(socket, to, bytes, 0);
    while (received < 0 && errno == EINTR);
    if (received < 0) die("recv: %m");
    return (size_t)received;
}

void acknowledge_round(int socket) {
    if (send(socket, "", 1, MSG_NOSIGNAL) != 1) die("the sender is gone: %m");
}
