/**
 * Preloaded into a program of MPI: stops a rank before its n-th all-reduce.
 *
 * STOPS has a word for each attempt of supply-run --max-restarts; further attempts are not disturbed. "RANK:CALL": that
 * rank kills itself by SIGKILL. "RANK:CALL:FILE": it makes that file and waits until it is gone.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stop(const char *file) {
    if (file == NULL) raise(SIGKILL);
    FILE *stream = fopen(file, "w");
    if (stream != NULL) fclose(stream);
    while (access(file, F_OK) == 0) usleep(10000);
}

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm comm) {
    static int calls;
    calls++;
    const char *word = getenv("STOPS"), *attempt = getenv("SUPPLY_RESTARTS");
    for (int left = attempt != NULL ? atoi(attempt) : 0; word != NULL && left > 0; left--) {
        word = strchr(word, ' ');
        if (word != NULL) word++;
    }
    int rank, its_rank, its_call;
    char file[1024];
    MPI_Comm_rank(comm, &rank);
    const int read = word != NULL ? sscanf(word, "%d:%d:%1023s", &its_rank, &its_call, file) : 0;
    if (read >= 2 && rank == its_rank && calls == its_call) stop(read == 3 ? file : NULL);
    return PMPI_Allreduce(sent, received, count, type, operation, comm);
}
