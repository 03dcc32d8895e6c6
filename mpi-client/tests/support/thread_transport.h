/** A transport between ranks that are threads of one process. It checks that all ranks begin the same operations. */
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

extern "C" {
#include "transport.h"
}

namespace supply_test {

class ThreadNetwork {
  public:
    explicit ThreadNetwork(int ranks)
        : ranks_(ranks), begun_(static_cast<size_t>(ranks)), connections_(static_cast<size_t>(ranks) * begun_.size()) {}

    /** The transport of a rank. It must not outlive the network. */
    transport of(int rank);

    /** Whether the exchange may have a thread. */
    bool any_thread = true;
    /** Called in front of each operation, in the thread that begins it. */
    std::function<void(int rank)> observe;

    /** From that operation on, each one of that rank fails. */
    void fail_from(int rank, uint64_t operation);

    /** Changes the first piece that a rank receives in an allgather or alltoall of pieces of that size. */
    void change(int rank, uint64_t operation, size_t bytes, std::function<void(void *)> how);

    /** Operations that a rank has begun. */
    uint64_t begun(int rank);
    /** Transports that were freed while an operation was under way. */
    int freed_while_pending();
    /** What ranks did wrong; empty: nothing. */
    std::string mistakes();
    /** The most bytes that one rank has received in one alltoallv. */
    size_t most_received();
    /** Other ranks to which a rank has sent pieces or messages, or from which it has received them: an allgather needs
     * fewer. */
    size_t connections(int rank);
    /** The networks that ranks have split off, each for some of them. */
    std::vector<ThreadNetwork *> parts();
    /** From now on, splitting fails for that rank. */
    void refuse_to_split(int rank);

  private:
    enum class Kind { allgather, alltoall, alltoallv };
    struct Call {
        Kind kind;
        const void *send;
        void *receive;
        size_t bytes;
        const part *send_parts, *receive_parts;
    };
    struct Operation {
        int arrived = 0;
        bool is_done = false;
        std::vector<Call> calls;
    };
    struct Context {
        ThreadNetwork *network;
        int rank;
    };

    supply_status_t begin(int rank, const Call &call, failure *failure);
    supply_status_t test(int rank);
    void complete(Operation &operation, uint64_t number);
    void copy(const Operation &operation, int from, int to);

    static supply_status_t allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                     failure *failure);
    static supply_status_t alltoall(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                    failure *failure);
    static supply_status_t alltoallv(void *context, const void *send, const part *send_parts, void *receive,
                                     const part *receive_parts, int *operation, failure *failure);
    static supply_status_t test(void *context, int operation, failure *failure);
    static supply_status_t split(void *context, const int *of, int ranks, int rank, transport *part, failure *failure);
    static void free(void *context, bool pending);

    const int ranks_;
    std::mutex mutex_;
    std::vector<uint64_t> begun_; /**< of each rank */
    std::vector<std::unique_ptr<Operation>> operations_;
    std::string mistakes_;
    struct Change {
        int rank;
        uint64_t operation;
        size_t bytes;
        std::function<void(void *)> how;
    };
    std::vector<Change> changes_;
    int failing_rank_ = -1, freed_while_pending_ = 0;
    uint64_t failing_from_ = 0;
    size_t most_received_ = 0;
    std::vector<bool> connections_; /**< from a rank, to a rank */
    std::map<std::vector<int>, std::unique_ptr<ThreadNetwork>> parts_;
    int refusing_rank_ = -1;
};

} // namespace supply_test
