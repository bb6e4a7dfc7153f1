#pragma once
// The numbers of math.h. Polynomials come from minimax.py. Scalar fma does not fuse, so constants whose products must be exact
// are short.

namespace isomer::simd::internal {

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
  static constexpr float kLog2e = 1.44269504089f;
  // The first part is short: its product with an exponent is exact.
  static constexpr float kLn2Hi = 0x1.62e4p-1f, kLn2Lo = 0x1.7f7d1cp-20f;
  static constexpr float kRound = 0x1.8p23f;
  static constexpr float kBiasLessOne = 126.0f;
  // Between the limit where the result leaves the normal range and the end of the reduced interval that holds it.
  static constexpr float kExpLo = -87.4f, kExpHi = 88.9f;
  // Twice the rest of the series of e^r after 1 + r: see exp_nonpositive.
  static constexpr float kExp[] = {0.9999998683f, 0.3333304022f, 0.08333678811f, 0.01673756073f, 0.00276289537f};
  static constexpr float kAtanh[] = {0.3333338836f, 0.199887478f, 0.1493653649f};
  static constexpr float kHalfPi[] = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68c234p-39f};
  static constexpr float kTrigMax = 8192.0f;
  static constexpr float kSin[] = {-0.1666665491f, 0.008332175845f, -0.0001951697741f};
  static constexpr float kCos[] = {0.04166664681f, -0.001388736449f, 2.443809133e-5f};
};

template <>
struct MathConstants<double> {
  static constexpr double kLog2e = 1.4426950408889634074;
  static constexpr double kLn2Hi = 0x1.62e42fefa2p-1, kLn2Lo = 0x1.9ef35793c7673p-41;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kBiasLessOne = 1022.0;
  static constexpr double kExpLo = -708.45, kExpHi = 709.9;
  static constexpr double kExp[] = {
      1.00000000000000214,    0.333333333333328205,     0.0833333333330583972,  0.0166666666669912145,  0.00277777778878396542,
      0.00039682539009583289, 0.0000496029855316505137, 5.51151746542546213e-6, 5.52607550492938939e-7, 4.99999353391149621e-8};
  static constexpr double kAtanh[] = {0.333333333333336745,  0.199999999997055457,  0.142857143716313682, 0.11111099237998626,
                                      0.0909178486920991287, 0.0765695165000291149, 0.0739875351443061794};
  static constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
  static constexpr double kTrigMax = 0x1p20;
  static constexpr double kSin[] = {-0.166666666666666319, 0.00833333333332236968,  -0.000198412698297709833,
                                    2.7557313678613933e-6, -2.50507559545120648e-8, 1.58966661578123865e-10};
  static constexpr double kCos[] = {0.0416666666666665992,   -0.00138888888888740649, 0.0000248015872894434818,
                                    -2.75573143406596124e-7, 2.08757216237580583e-9,  -1.13595593336798382e-11};
};

}  // namespace isomer::simd::internal
