#pragma once
// The named parameters of a model: values, gradients, and what optimisers and files need to know of them.
//
//   Parameters<float> parameters;
//   const Var<float> w = parameters.add({.name = "head.weight", .shape = {1000, 256}}).var;
//   initialise(parameters, seed);                                      // init.h
//   tape.backward(loss(tape, w));
//   for (const Parameter<float>& p : parameters.all()) update(p.values(), p.gradient());
//   parameters.zero_gradients();
//
// Numbers live in buffers of the store until it is gone; Vars may be kept by modules. Gradients are written by tapes: the first
// of a step sets, the others add, so that nothing is cleared. A parameter is dense; its Var has leading axes of 1.
//
//   Parameters<float> small(Type::bf16);     // to run a model, not to train it: matrices in half the memory, and no other copy
//   Parameters<float> mapped(Type::bf16, {views, file});    // numbers of a file that stay where they are
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "isomer/autograd/tape.h"
#include "isomer/base/buffer.h"
#include "isomer/base/tensor_view.h"
#include "isomer/mixers/parameter_init.h"

namespace isomer {

/// Does weight decay apply? To matrices; not to biases, gains and the like.
enum class Decay : std::uint8_t { yes, no };

/// Who reads a parameter? Products of matrices and look-ups in tables (autograd/linear.h, embedding.h) widen what is stored in
/// fewer bits; other arithmetic does not.
enum class Reader : std::uint8_t { any, products };

struct ParameterSpec {
  std::string name;
  std::vector<Index> shape = {};  // up to 4 axes, as in files
  graph::Init init = {};
  Decay decay = Decay::yes;
  graph::Training training = graph::Training::trained;
  Reader reader = Reader::any;
};

template <class T>
struct Parameter {
  ParameterSpec spec;
  Var<T> var;        // [1, …, shape]
  Index offset = 0;  // of its first number in the memory of its slot

  [[nodiscard]] const std::string& name() const { return spec.name; }
  /// T, or what the store keeps matrices in.
  [[nodiscard]] Type storage() const { return var.stored() ? var.slot->type : type_of<T>; }
  [[nodiscard]] Index bytes() const { return var.value.size() * bytes_of(storage()); }
  /// In whatever type they are stored.
  [[nodiscard]] MutableTensorView numbers() const;
  [[nodiscard]] bool trained() const { return spec.training == graph::Training::trained; }
  /// Of one that is stored in T.
  [[nodiscard]] std::span<T> values() const {
    ISOMER_ASSERT(!var.stored(), "numbers in another type are reached through numbers()");
    return {var.value.data, std::size_t(var.value.size())};
  }
  /// Empty when none has arrived since zero_gradients(): it counts as zero.
  [[nodiscard]] std::span<T> gradient() const {
    if (!var.slot->written) return {};
    return {var.slot->grad + (var.value.data - var.slot->base), std::size_t(var.value.size())};
  }
};

/// Numbers that are in memory already, by the names of parameters, and what keeps them there. Whoever trains the parameters
/// writes to them, so that a file has to be mapped for this process alone (io/mapping.h does).
struct GivenNumbers {
  TensorViews views = {};
  std::shared_ptr<const void> owner = {};
};

template <class T>
class Parameters {
 public:
  /// Matrices that only products read are kept in `storage`: T or, for float, BF16 or F16. Those of another type than T get no
  /// gradients, and optimisers refuse them. Throws Error for other types.
  /// What is `given` in the shape and the type that a parameter has here, and for a block of them in its order, stays where it
  /// is; assign() still takes all numbers, and copies the others. What is added after it stands in memory of its own.
  explicit Parameters(Type storage, GivenNumbers given = {});
  Parameters() : Parameters(type_of<T>) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  /// Throws Error when the name is taken. Values are uninitialised.
  const Parameter<T>& add(ParameterSpec spec);

  /// The same for what several modules have in common: a name that is taken gives the parameter that is there. Throws Error when
  /// that has another shape.
  const Parameter<T>& share(ParameterSpec spec);

  /// Matrices [N_i, K] (or vectors [N_i]) below each other in one buffer, so that the projections of one input are one product;
  /// returns the whole [1, 1, ΣN_i, K] (or [1, 1, 1, ΣN_i]). A part without a name is not listed: it is zero and stays so. The
  /// parts are used through the whole only: their gradients arrive together.
  Var<T> add_block(std::vector<ParameterSpec> parts);

  /// In the order they were added.
  [[nodiscard]] const std::deque<Parameter<T>>& all() const { return all_; }
  /// Throws Error naming the nearest when there is none.
  [[nodiscard]] const Parameter<T>& find(std::string_view name) const;
  /// How many numbers are trained.
  [[nodiscard]] Index trained_size() const;

  /// Bytes of numbers that stand in memory of the store, not where they were given.
  [[nodiscard]] Index own_bytes() const;

  /// From now on products with matrices that are stored in BF16 round what they multiply them with to bf16 as well, to the
  /// nearest; sums stay in float (kernels/gemm/gemm.h). Throws Error when none is stored so.
  void multiply_in_bf16();

  /// From now on the parameters that `frozen` accepts get no gradients; optimisers made later leave them as they are.
  void freeze(const std::function<bool(const std::string& name)>& frozen);

  /// All gradients count as zero until new ones arrive; nothing is written.
  void zero_gradients();

  /// From now on the gradients of trained parameters stand in one array a group, for who sums or sends them: group_of gives the
  /// group of a parameter, below `groups`. A block of matrices is in the group of its first part. All count as zero until new
  /// ones arrive.
  void group_gradients(std::size_t groups, const std::function<std::size_t(const Parameter<T>&)>& group_of);
  /// One array a group, the same in every store of the same parameters; what no gradient has reached becomes zero. Valid until
  /// the gradients are grouped again.
  [[nodiscard]] std::vector<std::span<T>> gradient_groups();

  /// Of names, types, shapes and numbers: other weights have another one.
  [[nodiscard]] std::string fingerprint() const;

  /// Copies by name, as in files, in the types that they are stored in.
  [[nodiscard]] Tensors tensors() const;
  /// Takes the numbers, of any floating type. Throws Error for a missing, an unknown or a misshaped name, and then nothing has
  /// changed.
  void assign(const Tensors& tensors);
  void assign(const TensorViews& tensors);
  /// Loading maps the file: numbers go from there to where they stay. Throws Error as safetensors.h and assign() do.
  void save(const std::string& path) const;
  void load(const std::string& path);

 private:
  struct Memory {
    Buffer<T> values, gradients;
    Buffer<std::byte> stored;  // in place of both
    internal::Slot<T> slot;
  };
  [[nodiscard]] Memory& allocate(std::span<const ParameterSpec> parts);
  [[nodiscard]] std::byte* in_place(std::span<const ParameterSpec> parts, Type type) const;
  const Parameter<T>& list(ParameterSpec spec, Index offset, Memory& memory);

  Type storage_;
  GivenNumbers given_;
  std::deque<Memory> memory_;      // slots stay where they are
  std::vector<Buffer<T>> groups_;  // of gradients
  std::deque<Parameter<T>> all_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

extern template class Parameters<float>;
extern template class Parameters<double>;

}  // namespace isomer
