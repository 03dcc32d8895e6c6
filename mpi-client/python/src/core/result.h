/** The rank's part of a result for Python. Any thread calls it; one at a time uses the handle, without the
 * interpreter's lock. */
#pragma once

#include <mutex>
#include <vector>

#include "pair.h"
#include "supply_result.h"

/** In Python a tuple of these, and a list of them. */
struct ResultField {
    std::string name, format, child_format;
    bool nullable;
    int child_count;
};

/** The fields of a list of tuples, each with its children after it, as supply_result_open() takes them. */
std::vector<ResultField> fields_from(const nanobind::list &fields);

class Result {
  public:
    Result(const Pair &pair, const std::string &name, const std::vector<ResultField> &fields);
    /** Without a pair: supply_result_create(). */
    Result(const Options &options, const std::string &name, const std::vector<ResultField> &fields);
    ~Result() { abort("the rank dropped this result and did not seal it"); }
    Result(const Result &) = delete;
    Result &operator=(const Result &) = delete;

    /** As supply_result_write_arrow(), with capsules of the Arrow PyCapsule interface. */
    void write_arrow(nanobind::capsule schema, nanobind::capsule array);
    /** All batches of a stream. */
    void write_stream(nanobind::capsule stream);
    void seal();
    /** Nothing if it is sealed or aborted already, or in a forked child. */
    void abort(const std::string &reason) noexcept;
    /** supply_result_abandon_in_child(). */
    void abandon_in_child() noexcept;

    bool is_open() const { return result_ != nullptr; }
    uint64_t rows();

  private:
    void check_begun(supply_status_t status);
    /** Calls it with the handle. Throws if that fails, or the result is sealed, aborted, or another process's. */
    template <typename Call>
    void use(Call call);

    supply_result_t *result_ = nullptr;
    std::mutex mutex_;
    const Opener opener_;
};

/** The fields of an Arrow schema. Texts have offsets of 32 bits in a result, whatever layout they have in the schema.
 */
nanobind::list result_fields(nanobind::capsule schema);

/** The same of an Arrow stream, which can be read afterwards. */
nanobind::list stream_fields(nanobind::capsule stream);
