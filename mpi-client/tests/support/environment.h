/** Environment variables of a test. */
#pragma once

#include <stdlib.h>

#include <string>

namespace supply_test {

/** Sets a variable (NULL: removes it). The destructor restores it. */
class EnvironmentVariable {
  public:
    EnvironmentVariable(const char *name, const char *value) : name_(name) {
        const char *before = getenv(name);
        was_set_ = before != nullptr;
        if (was_set_) before_ = before;
        set(value);
    }
    ~EnvironmentVariable() { set(was_set_ ? before_.c_str() : nullptr); }
    EnvironmentVariable(const EnvironmentVariable &) = delete;
    EnvironmentVariable &operator=(const EnvironmentVariable &) = delete;

  private:
    void set(const char *value) {
        if (value != nullptr)
            setenv(name_, value, 1);
        else
            unsetenv(name_);
    }
    const char *name_;
    bool was_set_;
    std::string before_;
};

} // namespace supply_test
