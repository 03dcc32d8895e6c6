#include "result.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nb = nanobind;

namespace {

/** A view of a Python object's memory, as long as it lives. */
class Buffer {
  public:
    explicit Buffer(const nb::object &object) {
        if (object.is_none()) return;
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
        is_set_ = true;
    }
    Buffer(Buffer &&other) noexcept : view_(other.view_), is_set_(other.is_set_) { other.is_set_ = false; }
    ~Buffer() {
        if (is_set_) PyBuffer_Release(&view_);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    Buffer &operator=(Buffer &&) = delete;

    const void *address() const { return is_set_ ? view_.buf : nullptr; }
    size_t bytes() const { return is_set_ ? static_cast<size_t>(view_.len) : 0; }

  private:
    Py_buffer view_ = {};
    bool is_set_ = false;
};

template <typename Structure>
Structure *structure_in(const nb::capsule &capsule, const char *name) {
    auto *structure = static_cast<Structure *>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (structure == nullptr) throw nb::python_error();
    return structure;
}

std::string format_in_result(const ArrowSchema &field) {
    const std::string format = field.format;
    if (field.dictionary != nullptr) return "dictionary";
    if (format == "U" || format == "vu") return "u";
    return format == "Z" || format == "vz" ? "z" : format;
}

/** Releases a structure that this code took out of a stream. */
template <typename Structure>
struct Taken : Structure {
    Taken() : Structure{} {}
    ~Taken() {
        if (this->release != nullptr) this->release(this);
    }
    Taken(const Taken &) = delete;
    Taken &operator=(const Taken &) = delete;
};

void check_stream(ArrowArrayStream *stream, int error) {
    if (error == 0) return;
    const char *text = stream->get_last_error(stream);
    raise(SUPPLY_ERROR_ARGUMENT, std::string("the Arrow stream failed: ") + (text != nullptr ? text : strerror(error)));
}

std::vector<ResultField> fields_of(const ArrowSchema &schema) {
    if (strcmp(schema.format, "+s") != 0)
        raise(SUPPLY_ERROR_ARGUMENT, "the rows of a result must be record batches, not an array of one column");
    std::vector<ResultField> fields;
    for (int64_t i = 0; i < schema.n_children; i++) {
        const ArrowSchema &field = *schema.children[i];
        fields.emplace_back(field.name != nullptr ? field.name : "", format_in_result(field),
                            field.n_children == 1 ? field.children[0]->format : "",
                            (field.flags & ARROW_FLAG_NULLABLE) != 0);
    }
    return fields;
}

std::vector<supply_field_t> passed_fields(const std::vector<ResultField> &fields) {
    std::vector<supply_field_t> passed;
    for (const auto &[column, format, child_format, nullable] : fields)
        passed.push_back({column.c_str(), nullable, format.c_str(), child_format.c_str()});
    return passed;
}

} // namespace

std::vector<ResultField> result_fields(nb::capsule schema) {
    return fields_of(*structure_in<ArrowSchema>(schema, "arrow_schema"));
}

std::vector<ResultField> stream_fields(nb::capsule capsule) {
    auto *stream = structure_in<ArrowArrayStream>(capsule, "arrow_array_stream");
    Taken<ArrowSchema> schema;
    check_stream(stream, stream->get_schema(stream, &schema));
    return fields_of(schema);
}

Result::Result(const Pair &pair, const std::string &name, const std::vector<ResultField> &fields) : process_(getpid()) {
    const std::vector<supply_field_t> passed = passed_fields(fields);
    check_begun(
        supply_result_open(&result_, pair.handle(), name.c_str(), passed.data(), static_cast<int>(passed.size())));
}

Result::Result(const Options &options, const std::string &name, const std::vector<ResultField> &fields)
    : process_(getpid()) {
    const std::vector<supply_field_t> passed = passed_fields(fields);
    const supply_options_t of_rank = options.passed();
    check_begun(supply_result_create(&result_, &of_rank, name.c_str(), passed.data(), static_cast<int>(passed.size())));
}

void Result::check_begun(supply_status_t status) {
    if (status == SUPPLY_OK) return;
    const std::string text = supply_result_error(result_);
    const int error_number = supply_result_error_errno(result_);
    supply_result_abort(result_, nullptr);
    raise(status, text, error_number);
}

supply_result_t *Result::handle() const {
    if (getpid() != process_)
        raise(SUPPLY_ERROR_ARGUMENT, "this result belongs to process " + std::to_string(process_) +
                                         ", which forked this process, " + std::to_string(getpid()) +
                                         ": write it there (in a DataLoader: num_workers=0)");
    if (result_ == nullptr) raise(SUPPLY_ERROR_ARGUMENT, "this result is sealed or aborted");
    return result_;
}

void Result::check(supply_status_t status) const {
    if (status < 0) raise(status, supply_result_error(result_), supply_result_error_errno(result_));
}

void Result::write(uint32_t rows, const std::vector<ResultBuffers> &columns) {
    supply_result_t *const result = handle();
    std::vector<Buffer> buffers;
    std::vector<supply_column_t> passed;
    for (const auto &[validity, offsets, data] : columns) {
        buffers.emplace_back(validity);
        buffers.emplace_back(offsets);
        buffers.emplace_back(data);
        const Buffer *of_column = &buffers[buffers.size() - 3];
        supply_column_t column = {};
        column.element_count = rows;
        column.validity = static_cast<const uint8_t *>(of_column[0].address());
        column.offsets = static_cast<const int32_t *>(of_column[1].address());
        column.data = of_column[2].address();
        column.data_bytes = of_column[2].bytes();
        passed.push_back(column);
    }
    supply_status_t status;
    {
        nb::gil_scoped_release released;
        const std::lock_guard<std::mutex> guard(mutex_);
        status = supply_result_write(result, passed.data(), static_cast<int>(passed.size()));
    }
    check(status);
}

void Result::write_arrow(nb::capsule schema, nb::capsule array) {
    supply_result_t *const result = handle();
    const auto *type = structure_in<ArrowSchema>(schema, "arrow_schema");
    const auto *rows = structure_in<ArrowArray>(array, "arrow_array");
    supply_status_t status;
    {
        nb::gil_scoped_release released;
        const std::lock_guard<std::mutex> guard(mutex_);
        status = supply_result_write_arrow(result, type, rows);
    }
    check(status);
}

void Result::write_stream(nb::capsule capsule) {
    supply_result_t *const result = handle();
    auto *stream = structure_in<ArrowArrayStream>(capsule, "arrow_array_stream");
    Taken<ArrowSchema> schema;
    check_stream(stream, stream->get_schema(stream, &schema));
    for (;;) {
        Taken<ArrowArray> rows;
        check_stream(stream, stream->get_next(stream, &rows));
        if (rows.release == nullptr) return;
        check(supply_result_write_arrow(result, &schema, &rows));
    }
}

void Result::seal() {
    supply_result_t *const result = handle();
    supply_status_t status;
    {
        nb::gil_scoped_release released;
        const std::lock_guard<std::mutex> guard(mutex_);
        status = supply_result_seal(result);
    }
    check(status);
    result_ = nullptr;
}

void Result::abort(const std::string &reason) noexcept {
    /* The file and its lock are the parent's. */
    if (result_ == nullptr || getpid() != process_) return;
    supply_result_abort(result_, reason.c_str());
    result_ = nullptr;
}

void Result::abandon_in_child() noexcept {
    supply_result_abandon_in_child(result_);
    result_ = nullptr;
}
