#include "resident_file.h"

#include <algorithm>
#include <cstring>

namespace supply_test {

ResidentFileImage::ResidentFileImage(const mapped_file_header &pair, const std::vector<schema_entry> &entries,
                                     uint64_t block_bytes, uint64_t generation)
    : bytes_(RING_OFFSET, '\0') {
    memcpy(header().magic, BLOCK_FILE_MAGIC, sizeof header().magic);
    header().version = VERSION;
    header().byte_order = BYTE_ORDER_MARK;
    header().generation = generation;
    header().ring_offset = RING_OFFSET;
    header().block_bytes = block_bytes;
    header().rank = pair.rank;
    header().local_rank = pair.local_rank;
    header().plan = pair.plan;
    header().task_pid = pair.task_pid;
    header().file_use = FILE_USE_RESIDENT;
    header().schema_columns = static_cast<uint32_t>(entries.size());
    std::copy(entries.begin(), entries.end(), &entry(0));
}

void ResidentFileImage::add(const BlockImage &block, uint32_t partition, uint64_t first_element) {
    const uint64_t offset = RING_OFFSET + header().published * header().block_bytes;
    bytes_.resize(offset);
    bytes_.append(block.bytes.begin(), block.bytes.end());
    notification copy = {};
    copy.generation = header().generation;
    copy.kind = NOTIFICATION_BLOCK;
    copy.element_count = block.element_count;
    copy.sequence = header().published++;
    copy.partition = partition;
    copy.first_element = first_element;
    copy.offset = offset;
    copy.size = block.bytes.size();
    memcpy(bytes_.data() + offset, &copy, sizeof copy);
    header().epoch_elements += block.element_count;
}

const std::string &ResidentFileImage::seal() {
    header().block_count = static_cast<uint32_t>(header().published);
    header().file_bytes = bytes_.size();
    header().sealed = SEALED_COMPLETE;
    return bytes_;
}

} // namespace supply_test
