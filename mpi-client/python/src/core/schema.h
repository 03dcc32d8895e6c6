/** The columns that every block of a run has. */
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
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

/** The living references of a pair, which they outlive if need be. The interpreter's lock guards them. */
class References {
  public:
    /** A reference to the block with that number. `view_of`: the name of a view's column; NULL: to the block itself. */
    struct Entry {
        uint64_t sequence;
        std::shared_ptr<const std::string> view_of;
    };

    /** Is one of the references as long as it lives. */
    class Place {
      public:
        Place(std::shared_ptr<References> references, Entry entry) : references_(std::move(references)) {
            references_->entries_.push_front(std::move(entry));
            entry_ = references_->entries_.begin();
        }
        ~Place() { references_->entries_.erase(entry_); }
        Place(const Place &) = delete;
        Place &operator=(const Place &) = delete;

      private:
        std::shared_ptr<References> references_;
        std::list<Entry>::iterator entry_;
    };

    const std::list<Entry> &entries() const { return entries_; }

  private:
    std::list<Entry> entries_;
};
