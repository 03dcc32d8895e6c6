/** The columns that every block of a run has. */
#ifndef SUPPLY_PYTHON_SCHEMA_H
#define SUPPLY_PYTHON_SCHEMA_H

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "supply.h"

/** The type of a column, or of the values within one. */
struct ColumnType {
    /** path: see `name`. is_map_entry: the struct of a map's keys and values. */
    ColumnType(supply_t *supply, int index, const supply_field_t &field, std::string path, bool is_map_entry);

    int index;         /**< of the column; of a child, that of its column */
    std::string field; /**< its own name */
    /** With the names around it: "point.x" of a struct, "scores.keys" of a map. The values of a list have its name. */
    std::string name;
    std::string format, child_format;
    bool is_plain;                /**< numbers: one for each element, or fixed lists of them */
    nanobind::dlpack::dtype type; /**< of a number */
    std::vector<size_t> widths;   /**< the lengths of fixed lists within each other, from the outermost */
    std::string leaf_format;      /**< of the values in the innermost of these lists */
    std::vector<std::shared_ptr<const ColumnType>> children;

    /** The places of the children on the way to a field of a struct, as "x" or "inner.x". Empty: there is none. */
    std::vector<size_t> find(const std::string &fields) const;
};

class Schema {
  public:
    void add(supply_t *supply, int index, const supply_field_t &field);
    bool empty() const { return columns_.empty(); }
    /** NULL: there is no such column. */
    std::shared_ptr<const ColumnType> find(const std::string &name) const;

  private:
    std::unordered_map<std::string, std::shared_ptr<const ColumnType>> columns_;
};

#endif
