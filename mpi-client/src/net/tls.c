/** OpenSSL's functions are looked up by name: libsupply needs no library of TLS where nobody asks for it. */
#include "net/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

/* Of openssl/ssl.h, the same in 1.1 and 3. */
enum { CONTROL_MODE = 33, CONTROL_MIN_VERSION = 123, VERSION_1_2 = 0x0303, PARTIAL_WRITES = 1, MOVING_BUFFER = 2 };
enum { INIT_NO_ATEXIT = 0x00080000 };
enum { WANT_READ = 2, WANT_WRITE = 3, SYSTEM_CALL = 5, CLOSED = 6 };

static struct {
    const void *(*TLS_client_method)(void);
    void *(*SSL_CTX_new)(const void *method);
    void (*SSL_CTX_free)(void *context);
    long (*SSL_CTX_ctrl)(void *context, int command, long number, void *pointer);
    void *(*SSL_new)(void *context);
    void (*SSL_free)(void *ssl);
    int (*SSL_set_fd)(void *ssl, int fd);
    int (*SSL_connect)(void *ssl);
    int (*SSL_read)(void *ssl, void *to, int bytes);
    int (*SSL_write)(void *ssl, const void *from, int bytes);
    int (*SSL_get_error)(const void *ssl, int result);
    void *(*SSL_get1_peer_certificate)(const void *ssl);
    int (*i2d_X509)(void *certificate, unsigned char **to);
    void (*X509_free)(void *certificate);
} openssl;

static bool is_loaded;

static void *find(void *library, const char *name, const char *older) {
    void *found = dlsym(library, name);
    return found != NULL || older == NULL ? found : dlsym(library, older);
}

static void load(void) {
    static const char *const names[] = {"libssl.so.3", "libssl.so.1.1"};
    void *library = NULL;
    for (int i = 0; i < 2 && library == NULL; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    /* At exit() a link's thread may still use it, so it must not free itself then: the process ends anyway. */
    int (*init)(uint64_t options, const void *settings);
    *(void **)&init = find(library, "OPENSSL_init_crypto", NULL);
    if (init != NULL) init(INIT_NO_ATEXIT, NULL);
    is_loaded = true;
#define FIND(name, older)                                                                                              \
    *(void **)&openssl.name = find(library, #name, older);                                                             \
    is_loaded = is_loaded && openssl.name != NULL
    FIND(TLS_client_method, NULL);
    FIND(SSL_CTX_new, NULL);
    FIND(SSL_CTX_free, NULL);
    FIND(SSL_CTX_ctrl, NULL);
    FIND(SSL_new, NULL);
    FIND(SSL_free, NULL);
    FIND(SSL_set_fd, NULL);
    FIND(SSL_connect, NULL);
    FIND(SSL_read, NULL);
    FIND(SSL_write, NULL);
    FIND(SSL_get_error, NULL);
    FIND(SSL_get1_peer_certificate, "SSL_get_peer_certificate");
    FIND(i2d_X509, NULL);
    FIND(X509_free, NULL);
#undef FIND
}

struct tls {
    void *context;
    void *ssl;
};

supply_status_t supply__tls_begin(struct tls **tls, int fd, struct failure *failure) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!is_loaded)
        return supply__fail(failure, SUPPLY_ERROR_CONFIG,
                            "the driver asks for TLS, and there is no libssl.so.3 or libssl.so.1.1: install OpenSSL "
                            "here, or set spark.supply.hub.tls=false");
    *tls = calloc(1, sizeof **tls);
    if (*tls != NULL) (*tls)->context = openssl.SSL_CTX_new(openssl.TLS_client_method());
    if (*tls == NULL || (*tls)->context == NULL) return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    openssl.SSL_CTX_ctrl((*tls)->context, CONTROL_MIN_VERSION, VERSION_1_2, NULL);
    openssl.SSL_CTX_ctrl((*tls)->context, CONTROL_MODE, PARTIAL_WRITES | MOVING_BUFFER, NULL);
    (*tls)->ssl = openssl.SSL_new((*tls)->context);
    if ((*tls)->ssl == NULL || openssl.SSL_set_fd((*tls)->ssl, fd) != 1)
        return supply__fail(failure, SUPPLY_ERROR_MEMORY, "out of memory");
    return SUPPLY_OK;
}

/* Returns as a system call, by what OpenSSL says of a result. */
static ssize_t outcome(const struct tls *tls, int result, short *events) {
    if (result > 0) return result;
    const int before = errno;
    switch (openssl.SSL_get_error(tls->ssl, result)) {
        case WANT_READ:
        case WANT_WRITE:
            *events = openssl.SSL_get_error(tls->ssl, result) == WANT_READ ? POLLIN : POLLOUT;
            errno = EAGAIN;
            return -1;
        case CLOSED:
            return 0;
        case SYSTEM_CALL:
            errno = before != 0 ? before : ECONNRESET;
            return -1;
        default:
            errno = EPROTO;
            return -1;
    }
}

static int limited(size_t bytes) { return bytes > INT_MAX ? INT_MAX : (int)bytes; }

ssize_t supply__tls_shake(struct tls *tls, short *events) {
    errno = 0;
    return outcome(tls, openssl.SSL_connect(tls->ssl), events);
}

ssize_t supply__tls_read(struct tls *tls, void *to, size_t bytes, short *events) {
    errno = 0;
    return outcome(tls, openssl.SSL_read(tls->ssl, to, limited(bytes)), events);
}

ssize_t supply__tls_write(struct tls *tls, const void *from, size_t bytes, short *events) {
    errno = 0;
    return outcome(tls, openssl.SSL_write(tls->ssl, from, limited(bytes)), events);
}

bool supply__tls_certificate(struct tls *tls, uint8_t digest[DIGEST_BYTES]) {
    void *certificate = openssl.SSL_get1_peer_certificate(tls->ssl);
    const int bytes = certificate != NULL ? openssl.i2d_X509(certificate, NULL) : 0;
    unsigned char *der = bytes > 0 ? malloc((size_t)bytes) : NULL, *end = der;
    if (der != NULL) {
        openssl.i2d_X509(certificate, &end);
        supply__sha256(der, (size_t)bytes, digest);
    }
    free(der);
    if (certificate != NULL) openssl.X509_free(certificate);
    return der != NULL;
}

void supply__tls_free(struct tls *tls) {
    if (tls == NULL) return;
    if (tls->ssl != NULL) openssl.SSL_free(tls->ssl);
    if (tls->context != NULL) openssl.SSL_CTX_free(tls->context);
    free(tls);
}
