/** The columns that every block of a run has. */
#ifndef SUPPLY_PYTHON_SCHEMA_H
#define SUPPLY_PYTHON_SCHEMA_H

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "supply.h"

struct ColumnType {
    ColumnType(int index, const supply_field_t &field);

    int index;
    std::string name, format, child_format;
    bool is_plain;                /**< numbers: one for each element, or a list of `width` */
    nanobind::dlpack::dtype type; /**< of a number */
    size_t width;                 /**< 0: no list */
};

class Schema {
  public:
    void add(int index, const supply_field_t &field);
    bool empty() const { return columns_.empty(); }
    /** NULL: there is no such column. */
    std::shared_ptr<const ColumnType> find(const std::string &name) const;

  private:
    std::unordered_map<std::string, std::shared_ptr<const ColumnType>> columns_;
};

#endif
