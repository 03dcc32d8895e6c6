/** A resident file as a task writes it, by PROTOCOL.md and independent of the library's code. */
#pragma once

#include <string>
#include <vector>

#include "block_image.h"

namespace supply_test {

class ResidentFileImage {
  public:
    /** Without blocks, for the pair of that header. */
    ResidentFileImage(const mapped_file_header &pair, const std::vector<schema_entry> &entries, uint64_t block_bytes,
                      uint64_t generation);

    /** F2. */
    void add(const BlockImage &block, uint32_t partition, uint64_t first_element);

    /** F3: the contents of the sealed file. */
    const std::string &seal();

    mapped_file_header &header() { return *reinterpret_cast<mapped_file_header *>(bytes_.data()); }
    schema_entry &entry(size_t index) { return reinterpret_cast<schema_entry *>(bytes_.data() + SCHEMA_OFFSET)[index]; }
    block_header &block(size_t index) { return *reinterpret_cast<block_header *>(block_address(index)); }
    block_column &column(size_t block, size_t index) {
        return reinterpret_cast<block_column *>(block_address(block) + sizeof(block_header))[index];
    }
    std::string &bytes() { return bytes_; }

  private:
    char *block_address(size_t index) { return bytes_.data() + RING_OFFSET + index * header().block_bytes; }

    std::string bytes_;
};

} // namespace supply_test
