/** PyTorch's tensors over memory of the pair. */
#ifndef SUPPLY_PYTHON_TENSOR_H
#define SUPPLY_PYTHON_TENSOR_H

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

/** A tensor by DLPack. torch.from_dlpack() takes a capsule faster than an object that makes one. */
inline nanobind::object tensor(const nanobind::ndarray<nanobind::no_framework, nanobind::ro> &values) {
    static nanobind::handle from_dlpack;
    if (!from_dlpack.is_valid())
        from_dlpack = nanobind::object(nanobind::module_::import_("torch").attr("from_dlpack")).release();
    return from_dlpack(nanobind::cast(values));
}

#endif
