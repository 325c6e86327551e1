/* fmath.h — exp, sigmoid and the normal distribution's integral, written so that loops over them
 * vectorise. Errors were measured over every 64th float of the range (tests/unit/test_fmath.c).
 */
#ifndef RC_EXEC_CPU_FMATH_H
#define RC_EXEC_CPU_FMATH_H

#include "base/simd.h"

#include <stdint.h>
#include <string.h>

/* e^x: relative error at most 2e-7; exactly 0 below -87.3 (where floats become denormal),
 * 2.4e38 above 88.37. x = n ln 2 + r, |r| <= ln 2 / 2; e^r by the polynomial of Cephes' expf. */
RC_INLINE float rc_exp(float x)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    float y = x > 88.37f ? 88.37f : x;
    y = y < -87.3f ? -87.3f : y;
    float t = y * 1.44269504f + shift;
    float n = t - shift;
    float r = y - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    uint32_t bits; /* the low bits of t are n; moved up they are the exponent of 2^n */
    memcpy(&bits, &t, sizeof bits);
    bits = (bits << 23) + 0x3F800000u;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.3f ? 0.0f : p * power;
}

/* 1 / (1 + e^-x): relative error at most 3e-7 */
RC_INLINE float rc_sigmoid(float x)
{
    return 1.0f / (1.0f + rc_exp(-x));
}

/* The normal distribution's integral, (1 + erf(x / sqrt 2)) / 2: absolute error at most 4e-7.
 * erfc by Abramowitz and Stegun 7.1.26, |error| <= 1.5e-7. */
RC_INLINE float rc_normal_cdf(float x)
{
    float z = (x < 0 ? -x : x) * 0.70710678f;
    float t = 1.0f / (1.0f + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    float tail = 0.5f * p * t * rc_exp(-z * z);
    return x < 0 ? tail : 1.0f - tail;
}

#endif
