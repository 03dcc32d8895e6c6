#include "thread_transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace supply_test {

transport ThreadNetwork::of(int rank) {
    return {rank,  ranks_,  any_thread, new Context{this, rank}, allgather, alltoall, alltoallv, test,
            split, nullptr, free};
}

void ThreadNetwork::fail_from(int rank, uint64_t operation) {
    std::lock_guard<std::mutex> lock(mutex_);
    failing_rank_ = rank;
    failing_from_ = operation;
}

void ThreadNetwork::change(int rank, uint64_t operation, size_t bytes, std::function<void(void *)> how) {
    std::lock_guard<std::mutex> lock(mutex_);
    changes_.push_back({rank, operation, bytes, std::move(how)});
}

uint64_t ThreadNetwork::begun(int rank) {
    std::lock_guard<std::mutex> lock(mutex_);
    return begun_[static_cast<size_t>(rank)];
}

int ThreadNetwork::freed_while_pending() {
    std::lock_guard<std::mutex> lock(mutex_);
    return freed_while_pending_;
}

std::string ThreadNetwork::mistakes() {
    std::string mistakes;
    for (ThreadNetwork *part : parts()) mistakes += part->mistakes();
    std::lock_guard<std::mutex> lock(mutex_);
    return mistakes + mistakes_;
}

size_t ThreadNetwork::connections(int rank) {
    std::lock_guard<std::mutex> lock(mutex_);
    const size_t all = begun_.size(), own = static_cast<size_t>(rank);
    size_t count = 0;
    for (size_t other = 0; other < all; other++)
        count += connections_[own * all + other] || connections_[other * all + own];
    return count;
}

std::vector<ThreadNetwork *> ThreadNetwork::parts() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<ThreadNetwork *> parts;
    for (const auto &part : parts_) parts.push_back(part.second.get());
    return parts;
}

void ThreadNetwork::refuse_to_split(int rank) {
    std::lock_guard<std::mutex> lock(mutex_);
    refusing_rank_ = rank;
}

size_t ThreadNetwork::most_received() {
    std::lock_guard<std::mutex> lock(mutex_);
    return most_received_;
}

supply_status_t ThreadNetwork::begin(int rank, const Call &call, failure *failure) {
    if (observe) observe(rank);
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t number = begun_[static_cast<size_t>(rank)];
    if (rank == failing_rank_ && number >= failing_from_) {
        failure->status = SUPPLY_ERROR_SYSTEM;
        failure->error = EIO;
        strcpy(failure->text, "the test's network is broken");
        return SUPPLY_ERROR_SYSTEM;
    }
    begun_[static_cast<size_t>(rank)]++;
    if (operations_.size() <= number) operations_.push_back(std::make_unique<Operation>());
    Operation &operation = *operations_[number];
    if (operation.calls.empty()) operation.calls.resize(static_cast<size_t>(ranks_), call);
    const Call &other = operation.calls[0];
    if (other.kind != call.kind || other.bytes != call.bytes)
        mistakes_ += "rank " + std::to_string(rank) + " begins another operation " + std::to_string(number) + "; ";
    operation.calls[static_cast<size_t>(rank)] = call;
    if (++operation.arrived == ranks_) complete(operation, number);
    return SUPPLY_OK;
}

/* Nobody copies before all ranks have begun, and nobody's call is over before all have copied. */
void ThreadNetwork::complete(Operation &operation, uint64_t number) {
    for (int from = 0; from < ranks_; from++)
        for (int to = 0; to < ranks_; to++) copy(operation, from, to);
    for (const Change &change : changes_) {
        const Call &call = operation.calls[static_cast<size_t>(change.rank)];
        if (change.operation != number) continue;
        if (call.kind == Kind::alltoallv || call.bytes != change.bytes)
            mistakes_ += "operation " + std::to_string(number) + " is not the one to change; ";
        else
            change.how(call.receive);
    }
    for (const Call &call : operation.calls) {
        if (call.kind != Kind::alltoallv) break;
        size_t received = 0;
        for (int from = 0; from < ranks_; from++) received += call.receive_parts[from].bytes;
        if (received > most_received_) most_received_ = received;
    }
    operation.is_done = true;
}

void ThreadNetwork::copy(const Operation &operation, int from, int to) {
    const Call &sender = operation.calls[static_cast<size_t>(from)];
    const Call &receiver = operation.calls[static_cast<size_t>(to)];
    const char *send = static_cast<const char *>(sender.send);
    char *receive = static_cast<char *>(receiver.receive);
    const bool is_message =
        sender.kind == Kind::alltoallv ? sender.send_parts[to].bytes > 0 : sender.kind == Kind::alltoall;
    if (is_message && from != to) connections_[static_cast<size_t>(from * ranks_ + to)] = true;
    if (sender.kind != Kind::alltoallv) {
        const size_t piece = sender.kind == Kind::alltoall ? static_cast<size_t>(to) : 0;
        memcpy(receive + static_cast<size_t>(from) * sender.bytes, send + piece * sender.bytes, sender.bytes);
        return;
    }
    const part &sent = sender.send_parts[to], &received = receiver.receive_parts[from];
    if (sent.bytes != received.bytes)
        mistakes_ += "rank " + std::to_string(from) + " sends " + std::to_string(sent.bytes) + " bytes to rank " +
                     std::to_string(to) + ", which expects " + std::to_string(received.bytes) + "; ";
    else if (sent.bytes > 0)
        memcpy(receive + received.offset, send + sent.offset, sent.bytes);
}

supply_status_t ThreadNetwork::test(int rank) {
    std::lock_guard<std::mutex> lock(mutex_);
    return operations_[begun_[static_cast<size_t>(rank)] - 1]->is_done ? SUPPLY_OK : SUPPLY_AGAIN;
}

supply_status_t ThreadNetwork::allgather(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                         failure *failure) {
    const Context &of = *static_cast<Context *>(context);
    *operation = 0;
    return of.network->begin(of.rank, {Kind::allgather, send, receive, bytes, nullptr, nullptr}, failure);
}

supply_status_t ThreadNetwork::alltoall(void *context, const void *send, void *receive, size_t bytes, int *operation,
                                        failure *failure) {
    const Context &of = *static_cast<Context *>(context);
    *operation = 0;
    return of.network->begin(of.rank, {Kind::alltoall, send, receive, bytes, nullptr, nullptr}, failure);
}

supply_status_t ThreadNetwork::alltoallv(void *context, const void *send, const part *send_parts, void *receive,
                                         const part *receive_parts, int *operation, failure *failure) {
    const Context &of = *static_cast<Context *>(context);
    *operation = 0;
    return of.network->begin(of.rank, {Kind::alltoallv, send, receive, 0, send_parts, receive_parts}, failure);
}

supply_status_t ThreadNetwork::test(void *context, int operation, failure *) {
    const Context &of = *static_cast<Context *>(context);
    return operation == NO_OPERATION ? SUPPLY_OK : of.network->test(of.rank);
}

supply_status_t ThreadNetwork::split(void *context, const int *of, int ranks, int rank, transport *part,
                                     failure *failure) {
    const Context &all = *static_cast<Context *>(context);
    std::lock_guard<std::mutex> lock(all.network->mutex_);
    if (all.rank == all.network->refusing_rank_) {
        failure->status = SUPPLY_ERROR_SYSTEM;
        strcpy(failure->text, "the test's network does not split");
        return SUPPLY_ERROR_SYSTEM;
    }
    std::unique_ptr<ThreadNetwork> &network = all.network->parts_[std::vector<int>(of, of + ranks)];
    if (network == nullptr) network = std::make_unique<ThreadNetwork>(ranks);
    *part = network->of(rank);
    return SUPPLY_OK;
}

void ThreadNetwork::free(void *context, bool pending) {
    const Context *of = static_cast<Context *>(context);
    if (pending) {
        std::lock_guard<std::mutex> lock(of->network->mutex_);
        of->network->freed_while_pending_++;
    }
    delete of;
}

} // namespace supply_test
