#pragma once
// The parts of the extension module, one file each.
#include <nanobind/nanobind.h>

namespace isomer::python {

void bind_kernels(nanobind::module_& module);
void bind_laws(nanobind::module_& module);
void bind_mixers(nanobind::module_& module);
void bind_models(nanobind::module_& module);
void bind_systems(nanobind::module_& module);

}  // namespace isomer::python
