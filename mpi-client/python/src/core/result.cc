#include "result.h"

#include <nanobind/stl/string.h>

#include <cerrno>
#include <cstring>

namespace nb = nanobind;

namespace {

template <typename Structure>
Structure *structure_in(const nb::capsule &capsule, const char *name) {
    auto *structure = static_cast<Structure *>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (structure == nullptr) throw nb::python_error();
    return structure;
}

std::string format_in_result(const ArrowSchema &field) {
    const std::string format = field.format;
    if (field.dictionary != nullptr) return "dictionary";
    if (format == "+L") return "+l";
    if (format == "U" || format == "vu") return "u";
    return format == "Z" || format == "vz" ? "z" : format;
}

/* Whether an Arrow list of fixed length is numbers that are never null, which the list itself has. */
bool has_numbers(const ArrowSchema &field) {
    if (strncmp(field.format, "+w:", 3) != 0 || field.n_children != 1) return false;
    const char *child = field.children[0]->format;
    return child[0] != '\0' && child[1] == '\0' && strchr("cCsSiIlLefg", child[0]) != nullptr &&
           field.children[0]->dictionary == nullptr && (field.children[0]->flags & ARROW_FLAG_NULLABLE) == 0;
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

/* Calls get_schema or get_next. Threads of the stream may need the interpreter's lock to read. */
template <typename Read, typename Structure>
void read(ArrowArrayStream *stream, Read read, Structure *to) {
    int error;
    {
        nb::gil_scoped_release released;
        error = read(stream, to);
    }
    if (error == 0) return;
    const char *text = stream->get_last_error(stream);
    raise(SUPPLY_ERROR_ARGUMENT, std::string("the Arrow stream failed: ") + (text != nullptr ? text : strerror(error)));
}

nb::list children_of(const ArrowSchema &schema) {
    nb::list fields;
    for (int64_t i = 0; i < schema.n_children; i++) {
        const ArrowSchema &field = *schema.children[i];
        const bool compact = has_numbers(field);
        fields.append(nb::make_tuple(field.name != nullptr ? field.name : "", format_in_result(field),
                                     compact ? field.children[0]->format : "", (field.flags & ARROW_FLAG_NULLABLE) != 0,
                                     compact ? nb::list() : children_of(field)));
    }
    return fields;
}

nb::list fields_of(const ArrowSchema &schema) {
    if (strcmp(schema.format, "+s") != 0)
        raise(SUPPLY_ERROR_ARGUMENT, "the rows of a result must be record batches, not an array of one column");
    return children_of(schema);
}

void add_fields(const nb::list &from, std::vector<ResultField> &to) {
    for (const nb::handle &each : from) {
        const auto field = nb::cast<nb::tuple>(each);
        const auto children = nb::cast<nb::list>(field[4]);
        to.push_back({nb::cast<std::string>(field[0]), nb::cast<std::string>(field[1]), nb::cast<std::string>(field[2]),
                      nb::cast<bool>(field[3]), static_cast<int>(nb::len(children))});
        add_fields(children, to);
    }
}

std::vector<supply_field_t> passed_fields(const std::vector<ResultField> &fields) {
    std::vector<supply_field_t> passed;
    for (const ResultField &field : fields) {
        supply_field_t one = {};
        one.name = field.name.c_str();
        one.nullable = field.nullable;
        one.format = field.format.c_str();
        one.child_format = field.child_format.c_str();
        one.child_count = field.child_count;
        passed.push_back(one);
    }
    return passed;
}

} // namespace

std::vector<ResultField> fields_from(const nb::list &fields) {
    std::vector<ResultField> found;
    add_fields(fields, found);
    return found;
}

nb::list result_fields(nb::capsule schema) { return fields_of(*structure_in<ArrowSchema>(schema, "arrow_schema")); }

nb::list stream_fields(nb::capsule capsule) {
    auto *stream = structure_in<ArrowArrayStream>(capsule, "arrow_array_stream");
    Taken<ArrowSchema> schema;
    read(stream, stream->get_schema, &schema);
    return fields_of(schema);
}

Result::Result(const Pair &pair, const std::string &name, const std::vector<ResultField> &fields) {
    const std::vector<supply_field_t> passed = passed_fields(fields);
    check_begun(
        supply_result_open(&result_, pair.handle(), name.c_str(), passed.data(), static_cast<int>(passed.size())));
}

Result::Result(const Options &options, const std::string &name, const std::vector<ResultField> &fields) {
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

/* Without the interpreter's lock: who waits for a thread that writes must not hold it. */
template <typename Call>
void Result::use(Call call) {
    opener_.check("result", "write");
    supply_status_t status = SUPPLY_ERROR_ARGUMENT;
    std::string text = "this result is sealed or aborted";
    int error_number = 0;
    {
        const LongWait wait;
        nb::gil_scoped_release released;
        const std::lock_guard<std::mutex> guard(mutex_);
        if (result_ != nullptr && (status = call(result_)) < 0) {
            text = supply_result_error(result_);
            error_number = supply_result_error_errno(result_);
        }
    }
    if (status == SUPPLY_INTERRUPTED) throw nb::python_error();
    if (status < 0) raise(status, text, error_number);
}

void Result::write_arrow(nb::capsule schema, nb::capsule array) {
    const auto *type = structure_in<ArrowSchema>(schema, "arrow_schema");
    const auto *rows = structure_in<ArrowArray>(array, "arrow_array");
    use([&](supply_result_t *result) { return supply_result_write_arrow(result, type, rows); });
}

void Result::write_stream(nb::capsule capsule) {
    auto *stream = structure_in<ArrowArrayStream>(capsule, "arrow_array_stream");
    Taken<ArrowSchema> schema;
    read(stream, stream->get_schema, &schema);
    for (;;) {
        Taken<ArrowArray> rows;
        read(stream, stream->get_next, &rows);
        if (rows.release == nullptr) return;
        use([&](supply_result_t *result) { return supply_result_write_arrow(result, &schema, &rows); });
    }
}

void Result::seal() {
    use([this](supply_result_t *result) {
        const supply_status_t status = supply_result_seal(result);
        if (status == SUPPLY_OK) result_ = nullptr;
        return status;
    });
}

void Result::abort(const std::string &reason) noexcept {
    /* The file and its lock are the parent's. */
    if (!opener_.is_this_process()) return;
    nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> guard(mutex_);
    if (result_ != nullptr) supply_result_abort(result_, reason.c_str());
    result_ = nullptr;
}

uint64_t Result::rows() {
    if (!opener_.is_this_process()) return 0;
    nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> guard(mutex_);
    return supply_result_rows(result_);
}

void Result::abandon_in_child() noexcept {
    supply_result_abandon_in_child(result_);
    result_ = nullptr;
}
