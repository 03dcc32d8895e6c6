#include "column.h"

Column::Column(Pair &pair, const supply_block_t &block, std::shared_ptr<const ColumnType> column_type)
    : type(std::move(column_type)), sequence(block.sequence),
      place_(pair.references(), {sequence, std::shared_ptr<const std::string>(type, &type->name)}) {
    supply_column_t column;
    pair.check(supply_column(pair.handle(), &block, type->index, &column));
    element_count = column.element_count;
    null_count = column.null_count;
    data_bytes = column.data_bytes;
    data = static_cast<const uint8_t *>(column.data);
    pair.check(supply_export_arrow(pair.handle(), &block, type->index, nullptr, &array_));
    validity = static_cast<const uint8_t *>(array_.buffers[0]);
    offsets = column.offsets != nullptr ? static_cast<const int32_t *>(array_.buffers[1]) : nullptr;
    if (column.offsets != nullptr || column.views != nullptr) values_ = std::make_unique<const Values>(column, array_);
}

std::vector<size_t> Column::shape() const {
    if (type->width == 0) return {element_count};
    return {element_count, type->width};
}
