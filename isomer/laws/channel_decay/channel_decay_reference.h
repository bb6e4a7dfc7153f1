#pragma once
// The definition of channel_decay in double, token by token. Arguments have been checked by channel_decay.cc.
#include "isomer/laws/channel_decay/channel_decay.h"

namespace isomer::channel_decay_detail {

template <class T>
void reference(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, const ChannelDecayOutputs<T>& out);
template <class T>
void reference_vjp(const ChannelDecayInputs<T>& in, const ChannelDecayOptions& options, const ChannelDecayCotangents<T>& given,
                   const ChannelDecayGradients<T>& grad);

}  // namespace isomer::channel_decay_detail
