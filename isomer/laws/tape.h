#pragma once
// What the forward pass of a law leaves for its backward pass.
#include <memory>
#include <typeinfo>
#include <vector>

#include "isomer/base/buffer.h"

namespace isomer {

/// The state at every edge of a chunk (delta: and what the chunk wrote). Keep it between calls: its memory is reused.
template <class T>
struct ChunkTape {
  Buffer<T> edges;
  Index chunk = 0;  // tokens of a chunk; 0: nothing was left

  /// Room for `size` elements, of chunks of C tokens.
  [[nodiscard]] T* record(Index C, Index size) {
    if (edges.size() < size) edges = Buffer<T>(size);
    chunk = C;
    return edges.data();
  }
  /// Was as much left, of chunks of C tokens?
  [[nodiscard]] bool holds(Index C, Index size) const { return chunk == C && edges.size() >= size; }
  [[nodiscard]] Index bytes() const { return edges.size() * Index(sizeof(T)); }
};

/// What any law leaves. One of each type is kept, so that calls of several laws, one after the other, reuse their memory.
class LawTape {
 public:
  template <class Kept>
  [[nodiscard]] Kept& as() {
    for (const auto& own : kept_)
      if (own->type() == typeid(Kept)) return static_cast<Holder<Kept>&>(*own).kept;
    kept_.push_back(std::make_unique<Holder<Kept>>());
    return static_cast<Holder<Kept>&>(*kept_.back()).kept;
  }
  [[nodiscard]] Index bytes() const {
    Index sum = 0;
    for (const auto& own : kept_) sum += own->bytes();
    return sum;
  }

 private:
  struct Any {
    virtual ~Any() = default;
    [[nodiscard]] virtual const std::type_info& type() const = 0;
    [[nodiscard]] virtual Index bytes() const = 0;
  };
  template <class Kept>
  struct Holder final : Any {
    Kept kept;
    [[nodiscard]] const std::type_info& type() const override { return typeid(Kept); }
    [[nodiscard]] Index bytes() const override { return kept.bytes(); }
  };
  std::vector<std::unique_ptr<Any>> kept_;
};

}  // namespace isomer
