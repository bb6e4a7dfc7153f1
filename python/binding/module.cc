// The extension module isomer._engine: what the package isomer is made of. Its functions are not for users.
#include "python/binding/module.h"

#include <nanobind/stl/string.h>

#include "isomer/base/cpu.h"
#include "isomer/base/error.h"
#include "isomer/base/machine.h"

NB_MODULE(_engine, module) {
  namespace nb = nanobind;
  nb::set_leak_warnings(false);  // laws that Python keeps for the next call live until the end
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const isomer::Error& problem) {
      PyErr_SetString(PyExc_ValueError, problem.what());
    }
  });
  module.attr("version") = std::string(isomer::version());
  module.attr("isa") = std::string(isomer::name_of(isomer::chosen_isa()));
  isomer::python::bind_kernels(module);
  isomer::python::bind_laws(module);
  isomer::python::bind_mixers(module);
  isomer::python::bind_models(module);
  isomer::python::bind_systems(module);
}
