/** Values in place: foreign files, and the views of a task into them. */
#pragma once

#include <string>

#include "block_image.h"

namespace supply_test {

/** Contents for a foreign file, of which no two places are alike nearby. */
std::string foreign_contents(size_t bytes, char first = 0);

/** The entry of that file, as it is now. */
foreign_file entry_of(const std::string &path);

window window_of(uint32_t file, uint64_t offset, uint64_t bytes);

/** The view of a value of at most VIEW_INLINE_MAX bytes. */
view inline_view(const std::string &value);

/** The view of a value that stands in a window. */
view view_of(const std::string &value, int32_t window, int32_t offset);

/** Datums whose data is `value_bytes` bytes of a foreign file of these contents, one after the other; or in the views.
 */
std::vector<Column> datum_columns_in_place(uint32_t file, const std::string &contents, size_t value_bytes,
                                           const std::vector<Element> &elements);

} // namespace supply_test
