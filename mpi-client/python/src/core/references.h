/** Which blocks Python references: RingFullError lists them. */
#ifndef SUPPLY_PYTHON_REFERENCES_H
#define SUPPLY_PYTHON_REFERENCES_H

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

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

#endif
