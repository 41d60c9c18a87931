// What surrounds the matrix products of a training step, each in one pass over memory: dropping out, norms, rotation,
// attention over short sequences, softmax over a vocabulary; and the way back of each.
//
// torch has all of it in several operations, each of which reads and writes whole tensors: for the small models here
// that takes longer than the products. Threads are those that torch uses, by OpenMP; how the work is shared out
// depends on their number alone, so a run can be repeated to the bit.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define X86 1
#include <immintrin.h>
#endif

namespace {

using Half = uint16_t;  // a bfloat16
constexpr float LOWEST = -1e30f;

struct Chance {  // of being dropped
  uint32_t low, high, cut;
  float scale;
};

struct Rows {  // (batch, length, heads, width) with these steps; angles may differ between the rows of a batch
  int64_t batch, time, head, angle_batch;
  int32_t length, heads, width;
};

struct Shape {  // of an attention: steps in numbers, sizes
  int64_t query_batch, query_time, query_head, key_batch, key_time, key_head, value_batch, value_time, value_head,
      gradient_batch, gradient_time, gradient_head, mask_batch, mask_query, mask_key;
  int32_t batch, heads, queries, keys, width;
  float scale;
};

template <typename Out, typename In>
using Drop = void (*)(Out*, const In*, int64_t, int64_t, const Chance&, bool);
template <typename In>
using Onto = void (*)(float*, const float*, const In*, int64_t, int64_t, const Chance&);
template <typename T>
using RectifiedBack = void (*)(T*, const T*, const T*, int64_t, int64_t, float);
template <typename Out>
using Norm = void (*)(Out*, float*, const float*, const float*, const float*, int64_t, int64_t, int, float);
template <typename In>
using NormBack = void (*)(float*, float*, float*, const In*, const float*, const float*, const float*, int64_t, int64_t,
                          int);
template <typename T>
using Turn = void (*)(T*, const T*, const float*, const float*, const Rows&, int64_t, int64_t, float);
template <typename T>
using Looks = void (*)(T*, float*, const T*, const T*, const T*, const uint8_t*, const Shape&, int64_t, int64_t);
template <typename T>
using LooksBack = void (*)(T*, T*, T*, const T*, const float*, const T*, const T*, const T*, const Shape&, int64_t,
                           int64_t);
template <typename T>
using LogSums = void (*)(float*, const T*, int64_t, int64_t, int64_t);
template <typename T>
using Slopes = void (*)(T*, const float*, const float*, const float*, const int64_t*, float*, int64_t, int64_t, int64_t);

struct Kernels {  // for one kind of processor; of each pair the second is for bfloat16
  int lanes;
  Drop<float, float> drop_ff;
  Drop<Half, float> drop_hf;
  Drop<Half, Half> drop_hh;
  Onto<float> onto;
  Onto<Half> onto_half;
  RectifiedBack<float> rectified_back;
  RectifiedBack<Half> rectified_back_half;
  Norm<float> norm;
  Norm<Half> norm_half;
  NormBack<float> norm_back;
  NormBack<Half> norm_back_half;
  Turn<float> turn;
  Turn<Half> turn_half;
  Looks<float> look;
  Looks<Half> look_half;
  LooksBack<float> look_back;
  LooksBack<Half> look_back_half;
  LogSums<float> log_sums;
  LogSums<Half> log_sums_half;
  Slopes<float> slopes;
  Slopes<Half> slopes_half;
};

float* scratch(size_t count) {
  static thread_local std::vector<float> room;
  if (room.size() < count) room.resize(count);
  return room.data();
}

inline float number(float value) { return value; }
inline float number(Half value) {
  const uint32_t bits = uint32_t(value) << 16;
  float found;
  std::memcpy(&found, &bits, 4);
  return found;
}
inline void set(float* to, float value) { *to = value; }
inline void set(Half* to, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  *to = value == value ? Half((bits + ((bits >> 16) & 1) + 0x7fff) >> 16) : Half(0x7fc0);
}

#ifdef X86
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")
namespace avx512 {
#define LANES 16
#define VNNI 1
#include "onepass.inc"
#undef LANES
#undef VNNI
#undef INLINE
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#define LANES 8
#define AVX2 1
#include "onepass.inc"
#undef LANES
#undef AVX2
#undef INLINE
}  // namespace avx2
#pragma GCC pop_options
#endif
namespace any {
#define LANES 4
#include "onepass.inc"
}  // namespace any

const Kernels& best() {
#ifdef X86
  static const Kernels& found =
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
          ? avx512::kernels
          : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2::kernels : any::kernels;
  return found;
#else
  return any::kernels;
#endif
}

// Equal stretches of `count` things, as many as there are threads; few things stay with one.
template <typename Function>
void share(int64_t count, int32_t threads, int64_t least, Function function) {
  const int parts = int(std::max<int64_t>(1, std::min<int64_t>(threads, count / least)));
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
  for (int part = 0; part < parts; part++) function(part, count * part / parts, count * (part + 1) / parts);
}

constexpr int64_t NUMBERS = 1 << 14;  // below which a second thread costs more than it saves

}  // namespace

extern "C" {

void onepass_sizes(int32_t* sizes) {
  sizes[0] = sizeof(Chance);
  sizes[1] = sizeof(Rows);
  sizes[2] = sizeof(Shape);
  sizes[3] = 1;  // of the functions below: another number whenever what one of them takes changes
}

int32_t onepass_lanes() { return best().lanes; }

// `kinds`: 0, floats; 2, floats in and bfloat16 out; 3, bfloat16.
void onepass_drop(void* out, const void* in, int32_t kinds, int64_t count, const Chance* chance, int32_t rectified,
                int32_t threads) {
  const Kernels& k = best();
  share(count, threads, NUMBERS, [&](int, int64_t begin, int64_t end) {
    if (kinds == 0) k.drop_ff((float*)out, (const float*)in, begin, end, *chance, rectified);
    if (kinds == 2) k.drop_hf((Half*)out, (const float*)in, begin, end, *chance, rectified);
    if (kinds == 3) k.drop_hh((Half*)out, (const Half*)in, begin, end, *chance, rectified);
  });
}

void onepass_onto(float* out, const float* x, const void* found, int32_t half, int64_t count, const Chance* chance,
                int32_t threads) {
  const Kernels& k = best();
  share(count, threads, NUMBERS, [&](int, int64_t begin, int64_t end) {
    half ? k.onto_half(out, x, (const Half*)found, begin, end, *chance)
         : k.onto(out, x, (const float*)found, begin, end, *chance);
  });
}

void onepass_rectified_back(void* out, const void* gradient, const void* found, int32_t half, int64_t count, float scale,
                          int32_t threads) {
  const Kernels& k = best();
  share(count, threads, NUMBERS, [&](int, int64_t begin, int64_t end) {
    half ? k.rectified_back_half((Half*)out, (const Half*)gradient, (const Half*)found, begin, end, scale)
         : k.rectified_back((float*)out, (const float*)gradient, (const float*)found, begin, end, scale);
  });
}

void onepass_norm(void* out, float* moments, const float* x, const float* weight, const float* bias, int32_t half,
                int64_t rows, int32_t width, float epsilon, int32_t threads) {
  const Kernels& k = best();
  share(rows, threads, NUMBERS / width + 1, [&](int, int64_t begin, int64_t end) {
    half ? k.norm_half((Half*)out, moments, x, weight, bias, begin, end, width, epsilon)
         : k.norm((float*)out, moments, x, weight, bias, begin, end, width, epsilon);
  });
}

// `sums`: for each thread a row of what goes to the weight and one of what goes to the bias, zeros at first.
void onepass_norm_back(float* out, float* sums, const void* gradient, const float* x, const float* moments,
                       const float* weight, int32_t half, int64_t rows, int32_t width, int32_t threads) {
  const Kernels& k = best();
  share(rows, threads, NUMBERS / width + 1, [&](int part, int64_t begin, int64_t end) {
    float *own = sums + int64_t(2) * width * part, *other = own + width;
    half ? k.norm_back_half(out, own, other, (const Half*)gradient, x, moments, weight, begin, end, width)
         : k.norm_back(out, own, other, (const float*)gradient, x, moments, weight, begin, end, width);
  });
}

void onepass_turn(void* out, const void* in, const float* cosine, const float* sine, const Rows* rows, int64_t batch,
                int32_t half, float way, int32_t threads) {
  const Kernels& k = best();
  const int64_t each = int64_t(rows->heads) * rows->width;
  share(batch * rows->length, threads, NUMBERS / each + 1, [&](int, int64_t begin, int64_t end) {
    half ? k.turn_half((Half*)out, (const Half*)in, cosine, sine, *rows, begin, end, way)
         : k.turn((float*)out, (const float*)in, cosine, sine, *rows, begin, end, way);
  });
}

void onepass_look(void* out, float* weights, const void* query, const void* key, const void* value, const uint8_t* mask,
                const Shape* shape, int32_t half, int32_t threads) {
  const Kernels& k = best();
  share(int64_t(shape->batch) * shape->heads, threads, 8, [&](int, int64_t begin, int64_t end) {
    half ? k.look_half((Half*)out, weights, (const Half*)query, (const Half*)key, (const Half*)value, mask, *shape,
                       begin, end)
         : k.look((float*)out, weights, (const float*)query, (const float*)key, (const float*)value, mask, *shape,
                  begin, end);
  });
}

void onepass_look_back(void* to_query, void* to_key, void* to_value, const void* gradient, const float* weights,
                     const void* query, const void* key, const void* value, const Shape* shape, int32_t half,
                     int32_t threads) {
  const Kernels& k = best();
  share(int64_t(shape->batch) * shape->heads, threads, 8, [&](int, int64_t begin, int64_t end) {
    half ? k.look_back_half((Half*)to_query, (Half*)to_key, (Half*)to_value, (const Half*)gradient, weights,
                            (const Half*)query, (const Half*)key, (const Half*)value, *shape, begin, end)
         : k.look_back((float*)to_query, (float*)to_key, (float*)to_value, (const float*)gradient, weights,
                       (const float*)query, (const float*)key, (const float*)value, *shape, begin, end);
  });
}

void onepass_log_sums(float* out, const void* logits, int32_t half, int64_t rows, int64_t vocabulary, int32_t threads) {
  const Kernels& k = best();
  share(rows, threads, NUMBERS / vocabulary + 1, [&](int, int64_t begin, int64_t end) {
    half ? k.log_sums_half(out, (const Half*)logits, begin, end, vocabulary)
         : k.log_sums(out, (const float*)logits, begin, end, vocabulary);
  });
}

// `sums`: a row for each thread, to which its slopes are added.
void onepass_slopes(void* logits, const float* log_sum, const float* times, const float* pull, const int64_t* label,
                    float* sums, int32_t half, int64_t rows, int64_t vocabulary, int32_t threads) {
  const Kernels& k = best();
  share(rows, threads, NUMBERS / vocabulary + 1, [&](int part, int64_t begin, int64_t end) {
    float* own = sums + vocabulary * part;
    half ? k.slopes_half((Half*)logits, log_sum, times, pull, label, own, begin, end, vocabulary)
         : k.slopes((float*)logits, log_sum, times, pull, label, own, begin, end, vocabulary);
  });
}

}  // extern "C"
