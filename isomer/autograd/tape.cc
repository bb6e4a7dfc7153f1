#include "isomer/autograd/tape.h"

#include <algorithm>

#include "isomer/base/error.h"
#include "isomer/kernels/elementwise/sum.h"

namespace isomer {

namespace {
/// Elements from the first to behind the last of a view with positive strides.
template <class T>
Index extent(const View<T, 4>& view) {
  Index last = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) last += (view.shape[axis] - 1) * view.stride[axis];
  return view.size() == 0 ? 0 : last + 1;
}

template <class T>
void fill(View<T, 4> x, T value, Context& context) {
  copy<T>({&value, x.shape, {}}, x, context);
}
}  // namespace

template <class T>
auto Tape<T>::slot(const Slot& from) -> Slot* {
  return new (keep<Slot>(1)) Slot(from);
}

template <class T>
Var<T> Tape<T>::make(const Shape4& shape, std::span<const Var<T>> inputs) {
  const Index size = size_of(shape);
  const bool wanted = recording() && std::any_of(inputs.begin(), inputs.end(), [](const Var<T>& in) { return in.wanted(); });
  T* data = keep<T>(size);
  return {contiguous(data, shape), slot({.base = data, .size = size, .wanted = wanted})};
}

template <class T>
Var<T> Tape<T>::piece(Var<T> of, View<T, 4> view) {
  return {view, slot({.base = of.slot->base, .whole = of.slot, .piece = view, .wanted = of.wanted()})};
}

template <class T>
Var<T> Tape<T>::input(View<T, 4> data, bool wanted) {
  return {data, slot({.base = data.data, .size = extent(data), .wanted = wanted && recording()})};
}

template <class T>
LawTape* Tape<T>::law_tape() {
  if (!recording()) return nullptr;
  if (law_tapes_used_ == law_tapes_.size()) law_tapes_.emplace_back();
  return &law_tapes_[law_tapes_used_++];
}

template <class T>
T* Tape<T>::take_gradient(Index size) {
  Block* best = nullptr;
  for (Block& block : blocks_)
    if (!block.taken && block.memory.size() >= size && block.memory.size() <= 2 * size &&
        (best == nullptr || block.memory.size() < best->memory.size()))
      best = &block;
  if (best == nullptr) best = &blocks_.emplace_back(Block{Buffer<T>(size), false});
  best->taken = true;
  internal::poison(best->memory.data(), std::size_t(size) * sizeof(T));
  return best->memory.data();
}

template <class T>
void Tape<T>::give_back_gradient(Slot& slot) {
  if (slot.grad == nullptr || slot.persistent || slot.whole != nullptr) return;
  for (Block& block : blocks_)
    if (block.memory.data() == slot.grad) block.taken = false;
  slot.grad = nullptr;
}

template <class T>
T* Tape<T>::gradient_memory(Slot& slot) {
  if (slot.whole != nullptr) return gradient_memory(*slot.whole);
  if (slot.grad == nullptr) slot.grad = take_gradient(slot.size);
  return slot.grad;
}

template <class T>
View<T, 4> Tape<T>::gradient_view(Var<T> var) {
  T* memory = gradient_memory(*var.slot);
  return {memory + (var.value.data - var.slot->base), var.value.shape, var.value.stride};
}

template <class T>
View<const T, 4> Tape<T>::arrived(Var<T> output) {
  const View<T, 4> view = gradient_view(output);
  if (!output.slot->written) fill(view, T(0), context_);
  output.slot->written = true;
  return view;
}

template <class T>
GradientTarget<T> Tape<T>::target(Var<T> input) {
  if (!input.wanted()) return {};
  Slot& slot = *input.slot;
  if (slot.partial && !slot.written) {
    const View<T, 4> whole =
        slot.whole != nullptr ? slot.piece : View<T, 4>{slot.base, {1, 1, 1, slot.size}, {slot.size, slot.size, slot.size, 1}};
    fill(gradient_view({whole, &slot}), T(0), context_);
    slot.written = true;
  }
  const GradientTarget<T> into{gradient_view(input), slot.written ? Accumulate::add : Accumulate::set};
  slot.written = true;
  return into;
}

template <class T>
View<T, 4> Tape<T>::seed(Var<T> output) {
  ISOMER_ASSERT(output.wanted(), "a gradient goes back from what was computed from something that wants one");
  return target(output).view;
}

template <class T>
void Tape<T>::run(const Closure& closure) {
  bool reached = false;
  for (Index i = 0; i < closure.count; ++i) reached = reached || closure.outputs[i]->written;
  if (reached) closure.run(closure.self, *this);
  for (Index i = 0; i < closure.count; ++i) give_back_gradient(*closure.outputs[i]);
}

template <class T>
void Tape<T>::backward_to(Mark mark) {
  while (closures_.size() > mark.closures) {
    const Closure closure = closures_.back();
    closures_.pop_back();
    run(closure);
  }
}

template <class T>
void Tape<T>::backward() {
  backward_to({0});
}

template <class T>
void Tape<T>::backward(Var<T> loss) {
  fill(seed(loss), T(1), context_);
  backward();
}

template <class T>
void Tape<T>::clear() {
  closures_.clear();
  law_tapes_used_ = 0;
  for (Block& block : blocks_) block.taken = false;
  scope_.reset();
  scope_.emplace(*memory_);
}

template <class T>
Index Tape<T>::bytes() const {
  Index elements = 0;
  for (const Block& block : blocks_) elements += block.memory.size();
  Index laws = 0;
  for (const LawTape& law : law_tapes_) laws += law.bytes();
  return memories_[0].bytes() + memories_[1].bytes() + elements * Index(sizeof(T)) + laws;
}

template class Tape<float>;
template class Tape<double>;

}  // namespace isomer
