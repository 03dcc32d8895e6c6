/** Access to JSON for tests. */
#pragma once

#include <jansson.h>

#include <stdexcept>
#include <string>

namespace supply_test {

/** A JSON value. Text that is not JSON throws. A missing value is null. */
class Json {
  public:
    explicit Json(const std::string &text) : value_(json_loadb(text.data(), text.size(), 0, nullptr)) {
        if (value_ == nullptr) throw std::runtime_error("this is not JSON: " + text);
    }
    Json(const Json &other) : value_(json_incref(other.value_)) {}
    Json &operator=(Json other) {
        std::swap(value_, other.value_);
        return *this;
    }
    ~Json() { json_decref(value_); }

    Json operator[](const char *name) const { return Json(json_object_get(value_, name)); }
    Json operator[](size_t index) const { return Json(json_array_get(value_, index)); }
    size_t size() const { return json_array_size(value_); }
    bool is_null() const { return value_ == nullptr || json_is_null(value_); }
    bool is_true() const { return json_is_true(value_); }
    /** "" if it is not a string. */
    std::string text() const { return json_is_string(value_) ? json_string_value(value_) : ""; }
    /** -1 if it is not a number. */
    double number() const { return json_is_number(value_) ? json_number_value(value_) : -1; }

  private:
    explicit Json(json_t *borrowed) : value_(json_incref(borrowed)) {}
    json_t *value_;
};

} // namespace supply_test
