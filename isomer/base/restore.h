#pragma once
// Gives a variable another value until the end of a block, whatever way it is left.

namespace isomer {

template <class T>
class Restore {
 public:
  Restore(T& place, T value) : place_(place), before_(place) { place = value; }
  ~Restore() { now(); }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;
  void now() { place_ = before_; }

 private:
  T& place_;
  T before_;
};

}  // namespace isomer
