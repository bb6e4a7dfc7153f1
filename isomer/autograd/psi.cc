#include "isomer/autograd/psi.h"

#include "isomer/autograd/fill.h"
#include "isomer/autograd/op_views.h"

namespace isomer::ops {

template <class T>
Var<T> psi(Tape<T>& tape, Var<T> u, const PsiVars<T>& p, PsiOptions options) {
  const auto parameter = [](Var<T> var) { return matrix(View<const T, 4>(var.value)); };
  const PsiParameters<T> parameters{parameter(p.w1), parameter(p.b1), parameter(p.w2), parameter(p.b2)};
  const Var<T> y = tape.make({u.dim(0), u.dim(1), u.dim(2), u.dim(3) * p.w2.dim(2)}, {u, p.w1, p.b1, p.w2, p.b2});
  const auto with_table = [=](Context& context, auto f) {
    const Workspace::Scope scope(context.workspace());
    f(psi_table<T>(parameters, context.workspace()));
  };
  with_table(tape.context(), [&](const PsiTable<T>& table) { psi<T>(table, options, u.value, y.value, tape.context()); });
  tape.record({y}, [=](Tape<T>& back) {
    GradientWriter<T> write(back);
    const PsiGradients<T> grad{.du = write(u),
                               .dw1 = matrix(write(p.w1)),
                               .db1 = matrix(write(p.b1)),
                               .dw2 = matrix(write(p.w2)),
                               .db2 = matrix(write(p.b2))};
    with_table(back.context(), [&](const PsiTable<T>& table) {
      psi_vjp<T>(table, parameters, options, u.value, back.arrived(y), grad, back.context());
    });
    write.finish();
  });
  return y;
}

template Var<float> psi(Tape<float>&, Var<float>, const PsiVars<float>&, PsiOptions);
template Var<double> psi(Tape<double>&, Var<double>, const PsiVars<double>&, PsiOptions);

}  // namespace isomer::ops
