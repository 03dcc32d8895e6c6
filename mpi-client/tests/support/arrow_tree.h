/** Arrow's structures of nested columns, which a test builds by hand. */
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "supply_arrow.h"

namespace supply_test {

/** A schema and an array, with their children. The buffers are the test's. */
class ArrowTree {
  public:
    ArrowTree(std::string name, std::string format, int64_t length, std::vector<const void *> buffers = {nullptr})
        : name(std::move(name)), format(std::move(format)), buffers(std::move(buffers)) {
        schema.name = this->name.c_str();
        schema.format = this->format.c_str();
        array.length = length;
        array.null_count = this->buffers[0] == nullptr ? 0 : -1;
        schema.flags = this->buffers[0] == nullptr ? 0 : ARROW_FLAG_NULLABLE;
        array.n_buffers = static_cast<int64_t>(this->buffers.size());
        array.buffers = this->buffers.data();
    }
    ArrowTree(const ArrowTree &) = delete;
    ArrowTree &operator=(const ArrowTree &) = delete;

    /** Adds a child. Returns it. */
    template <typename... Arguments>
    ArrowTree &add(Arguments &&...arguments) {
        ArrowTree &child = children.emplace_back(std::forward<Arguments>(arguments)...);
        schemas.push_back(&child.schema);
        arrays.push_back(&child.array);
        schema.children = schemas.data();
        array.children = arrays.data();
        schema.n_children = array.n_children = static_cast<int64_t>(schemas.size());
        return child;
    }

    /** The rows from `offset` on. */
    ArrowTree &slice(int64_t offset, int64_t length) {
        array.offset = offset;
        array.length = length;
        return *this;
    }

    ArrowTree &nullable() {
        schema.flags |= ARROW_FLAG_NULLABLE;
        return *this;
    }

    ArrowTree &child(size_t index) { return children.at(index); }

    ArrowSchema schema = {};
    ArrowArray array = {};

  private:
    std::string name, format;
    std::vector<const void *> buffers;
    std::deque<ArrowTree> children;
    std::vector<ArrowSchema *> schemas;
    std::vector<ArrowArray *> arrays;
};

} // namespace supply_test
