// A model as a short list of instructions in, written tokens out: the inner loop of decoding, without Python in it.
//
// `regard/engine/lower.py` translates a model into three programs: `read` (source tokens to states), `hold` (states to
// keys, values and the first state of the decoder) and `step` (one token for each row to the logits of the next). A
// register holds a vector for each token, each source or each row. Nothing is padded: a batch is a list of rows, each
// at its own position, and what comes out for one does not depend on the others, to the last bit (kernels.inc).
//
// Keys and values of the tokens written so far are entries that are never moved: a row knows the numbers of its own
// entries, so a beam that is reordered copies a few whole numbers and no vectors.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define X86 1
#include <immintrin.h>
#endif

namespace {

enum Operation { EMBED, PLACE, LINEAR, NORM, ADD, CAT, SLICE, GLU, MULTIPLY, SELF, CROSS, WITHIN, TURN, CELL, RUN,
                 MEAN, LAST, NEIGHBOURS, HOLD, ZERO, OFFER, NGRAMS };
enum Activation { NONE, RELU, GELU, SILU, TANH };
enum LookKind { PRODUCT, ADDITIVE, DISTANCE, UNIFORM };
enum CellKind { ELMAN, GRU, LSTM };
enum { BLOCK = 96, PAD = 0, END = 2 };  // rows that share a panel of weights; no token; the token that ends a text
constexpr float LOWEST = -1e9f, TINY = std::numeric_limits<float>::min();

// Room that begins where a cache line does: a register that is loaded across two lines takes twice as long. Large rooms
// ask for large pages.
template <typename T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <typename Other>
  Aligned(const Aligned<Other>&) {}
  T* allocate(size_t count) {
    const size_t size = count * sizeof(T), line = size >= (1 << 21) ? 1 << 21 : 64;
    void* room = std::aligned_alloc(line, (size + line - 1) / line * line);
    if (!room) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (line > 64) madvise(room, (size + line - 1) / line * line, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(room);
  }
  void deallocate(T* room, size_t) { std::free(room); }
  bool operator==(const Aligned&) const { return true; }
  bool operator!=(const Aligned&) const { return false; }
};

using Numbers = std::vector<float, Aligned<float>>;
using Bytes = std::vector<int8_t, Aligned<int8_t>>;

struct Look {  // how one attention compares
  int32_t kind, heads, key_width, value_width, reach;
  float scale;
  const float* vector;  // of the additive score, a stretch for each head
  const float* bias;    // of relative positions: (2 reach + 1) × heads
  const float* rate;    // of a penalty that grows with the distance: one for each head
};

struct Total {  // what makes a log probability of a logit: (logit − most) − sum
  float most, sum;
  float log(float logit) const { return logit - most - sum; }
};

struct Kernels {  // the arithmetic, for one kind of processor
  int columns;
  void (*activate)(float*, int, int);
  void (*glu)(float*, const float*, int);
  void (*gru)(float*, const float*, const float*, const float*, int);
  void (*lstm)(float*, float*, const float*, const float*, const float*, int);
  void (*elman)(float*, const float*, const float*, int);
  void (*norm)(float*, const float*, const float*, const float*, int, float, bool);
  void (*attend_across)(float*, const float*, const float*, const float*, const float*, int, int, int, const Look&,
                        float*);
  void (*attend_entries)(float*, const float*, const float*, const float*, const int32_t*, int, const Look&, float*);
  void (*point)(float*, const float*, const float*, int, const Look&);
  size_t (*packed_size)(int, int, bool);
  void (*pack)(float*, const float*, int, int);
  void (*product)(const float*, int, int, const float*, const float*, float*, int);
  void (*pack_whole)(int8_t*, const int8_t*, int, int);
  void (*whole_product)(const float*, int, int, const int8_t*, const int32_t*, const float*, const float*, float*, int);
  Total (*log_total)(float*, int);
  void (*mix)(float*, int, const float*, const int32_t*, int, float);
  int (*above)(const float*, int, float, int);
};

float* scratch(int count) {
  static thread_local Numbers room;
  if (int(room.size()) < count) room.resize(count);
  return room.data();
}

int8_t* bytes(size_t count) {
  static thread_local Bytes room;
  if (room.size() < count) room.resize(count);
  return room.data();
}

#ifdef X86
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")
namespace avx512 {
#define LANES 16
#define VECTORS 4
#define ROWS_AT_ONCE 6
#define VNNI 1
#include "kernels.inc"
#undef LANES
#undef VECTORS
#undef ROWS_AT_ONCE
#undef VNNI
#undef INLINE
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#define LANES 8
#define VECTORS 2
#define ROWS_AT_ONCE 6
#define AVX2 1
#include "kernels.inc"
#undef LANES
#undef VECTORS
#undef ROWS_AT_ONCE
#undef AVX2
#undef INLINE
}  // namespace avx2
#pragma GCC pop_options
#endif
namespace any {
#define LANES 4
#define VECTORS 2
#define ROWS_AT_ONCE 4
#include "kernels.inc"
}  // namespace any

const Kernels& kernels_of(int32_t level) {
#ifdef X86
  if (level == 2) return avx512::kernels;
  if (level == 1) return avx2::kernels;
#endif
  return any::kernels;
}

int32_t best_level() {
#ifdef X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
  return 0;
}

// ── a model ─────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Instruction {
  int32_t operation, out, a, b, c, number[5];
  float value;
};

struct Register {
  int32_t width, domain;  // a vector for each token (0), or for each source or row (1)
};

struct Linear {
  int k, m;
  bool whole;
  Numbers packed, bias, scale;
  Bytes packed_whole;
  std::vector<int32_t> start;
};

struct Table {
  int rows, width;
  Numbers numbers;
};

struct Program {
  std::vector<Register> registers;
  std::vector<Instruction> instructions;
};

struct Pointer {  // a copy head: linears by their numbers, and for each token of a source the target's, or PAD
  int query = -1, key = -1, gate = -1, look = -1;
  std::vector<int32_t> copies;
};

struct Engine {
  const Kernels* kernels;
  std::vector<std::unique_ptr<Linear>> linears;
  std::vector<std::unique_ptr<Table>> tables;
  std::vector<Look> looks;
  Program programs[3];           // read, hold, step; read and hold share their registers
  std::vector<int> first_state;  // registers of `hold` that start a row's state
  std::vector<int> state;        // registers of `step` that carry it: read at the beginning of a step
  std::vector<int> next_state;   // and the registers that hold it at the end
  std::vector<int> entries;      // for each self-attention of `step`, its look
  int states = -1;               // register of `read` with the encoder's states
  int last = -1;                 // register of `step` with the decoder's states
  int output = -1;               // the linear that makes logits of them
  Pointer pointer;               // what is copied, mixed with these
  int memories = 0;              // attentions that look at the source
  bool prefix = false;           // the source is fed to the decoder instead
  bool copies() const { return pointer.query >= 0; }
};

void multiply(const Engine& engine, const Linear& linear, const float* x, int n, float* out) {
  if (linear.whole)
    engine.kernels->whole_product(x, n, linear.k, linear.packed_whole.data(), linear.start.data(), linear.scale.data(),
                                  linear.bias.data(), out, linear.m);
  else
    engine.kernels->product(x, n, linear.k, linear.packed.data(), linear.bias.data(), out, linear.m);
}

// ── what is computed ────────────────────────────────────────────────────────────────────────────────────────────────

struct Held {  // what one attention looks up in one source
  int count = 0, stride = 0;
  Numbers keys, extra, values;
};

struct Offer {                          // what one source offers to be copied; its other places are left out
  Numbers keys;                         // of its places, one after the other
  std::vector<int32_t> number, tokens;  // for each place which of `tokens` it is; these are all different
  int places() const { return int(number.size()); }
  void add(const float* key, int width, int32_t copy) {
    keys.insert(keys.end(), key, key + width);
    const auto known = std::find(tokens.begin(), tokens.end(), copy);
    number.push_back(int32_t(known - tokens.begin()));
    if (known == tokens.end()) tokens.push_back(copy);
  }
};

struct Source {
  int number = 0;
  int prefix = 0;  // how many of its tokens are fed to the decoder
  std::vector<Held> held;
  Offer offer;
  std::vector<Numbers> keys, values;  // of the tokens written, for each self-attention, entry after entry
  int entries = 0;
};

struct Row {
  Source* source = nullptr;
  std::vector<int32_t> entries;  // of the tokens fed so far, in order
  int at = 0;
};

struct Place {  // of a source: its state, and what it would be copied as
  Source* source;
  const float* state;
  int32_t copy;
};

struct Registers {
  std::vector<Numbers> room;
  float* ready(int which, size_t count) {
    if (int(room.size()) <= which) room.resize(which + 1);
    if (room[which].size() < count) room[which].resize(count);
    return room[which].data();
  }
};

// Sources that are read together: token after token, the first of each at `first[b]`.
struct Reading {
  std::vector<int32_t> ids, at;
  std::vector<int> first, length;
  std::vector<Source*> sources;
  int tokens() const { return int(at.size()); }
};

struct Machine {  // one worker: registers of its own, weights that all share
  const Engine& engine;
  const Kernels& kernels;
  Registers reading_room, step_room;
  std::vector<Row> rows;
  std::vector<Numbers> states;  // for each state register, a vector for each row
  Numbers weights, logits, other, queries, gates, mass;

  explicit Machine(const Engine& e) : engine(e), kernels(*e.kernels), states(e.state.size()) {}

  float* room(Registers& registers, const Program& program, int which, int tokens, int rows_now) {
    const Register& r = program.registers[which];
    return registers.ready(which, size_t(r.domain == 0 ? tokens : rows_now) * r.width);
  }

  float* weights_for(int count) {
    if (int(weights.size()) < count + 16) weights.resize(count + 64);
    return weights.data();
  }

  // Operations that treat all vectors alike, be they of tokens, sources or rows.
  bool common(const Program& program, Registers& registers, const Instruction& i, int tokens, int rows_now,
              const int32_t* ids, const int32_t* at) {
    auto get = [&](int which) { return which < 0 ? nullptr : room(registers, program, which, tokens, rows_now); };
    if (i.out < 0) return false;
    const Register& made = program.registers[i.out];
    const int n = made.domain == 0 ? tokens : rows_now, width = made.width;
    float* out = get(i.out);
    switch (i.operation) {
      case EMBED: {
        const Table& table = *engine.tables[i.number[0]];
        for (int r = 0; r < n; r++) {
          const float* from = &table.numbers[size_t(ids[r]) * width];
          for (int d = 0; d < width; d++) out[size_t(r) * width + d] = from[d] * i.value;
        }
        return true;
      }
      case PLACE: {
        const Table& table = *engine.tables[i.number[0]];
        const float* a = get(i.a);
        Numbers far(width);
        for (int r = 0; r < n; r++) {
          const float* place = at[r] < table.rows ? &table.numbers[size_t(at[r]) * width] : waves(far, at[r]);
          for (int d = 0; d < width; d++) out[size_t(r) * width + d] = a[size_t(r) * width + d] + place[d];
        }
        return true;
      }
      case LINEAR:
        multiply(engine, *engine.linears[i.number[0]], get(i.a), n, out);
        for (int r = 0; i.number[1] != NONE && r < n; r += BLOCK)
          kernels.activate(out + size_t(r) * width, std::min(int(BLOCK), n - r) * width, i.number[1]);
        return true;
      case NORM: {
        const float* a = get(i.a);
        const float* bias = i.number[1] < 0 ? nullptr : engine.tables[i.number[1]]->numbers.data();
        for (int r = 0; r < n; r++)
          kernels.norm(out + size_t(r) * width, a + size_t(r) * width, engine.tables[i.number[0]]->numbers.data(), bias,
                       width, i.value, i.number[2]);
        return true;
      }
      case ADD: {
        const float *a = get(i.a), *b = get(i.b);
        const size_t count = size_t(n) * width;
        for (size_t d = 0; d < count; d++) out[d] = a[d] + b[d];
        if (i.value != 1.0f)
          for (size_t d = 0; d < count; d++) out[d] *= i.value;
        return true;
      }
      case MULTIPLY: {
        const float *a = get(i.a), *b = get(i.b);
        for (size_t d = 0; d < size_t(n) * width; d++) out[d] = a[d] * b[d];
        return true;
      }
      case CAT: {
        const float *a = get(i.a), *b = get(i.b);
        const int left = program.registers[i.a].width, right = program.registers[i.b].width;
        for (int r = 0; r < n; r++) {
          std::memcpy(out + size_t(r) * width, a + size_t(r) * left, left * sizeof(float));
          std::memcpy(out + size_t(r) * width + left, b + size_t(r) * right, right * sizeof(float));
        }
        return true;
      }
      case SLICE: {
        const float* a = get(i.a);
        const int whole = program.registers[i.a].width;
        for (int r = 0; r < n; r++)
          std::memcpy(out + size_t(r) * width, a + size_t(r) * whole + i.number[0], width * sizeof(float));
        return true;
      }
      case GLU: {
        const float* a = get(i.a);
        for (int r = 0; r < n; r++) kernels.glu(out + size_t(r) * width, a + size_t(r) * 2 * width, width);
        return true;
      }
      case TURN: turn(out, get(i.a), n, width, at, i); return true;
      case CELL: {
        const float *x = get(i.a), *h = get(i.b), *old = get(i.c);
        cell(i.number[0], out, get(i.number[1]), x, h, old, n, width);
        return true;
      }
      case ZERO: std::memset(out, 0, size_t(n) * width * sizeof(float)); return true;
      default: return false;
    }
  }

  // Sines and cosines of a position beyond the table.
  static const float* waves(Numbers& far, int at) {
    const int width = int(far.size()), half = (width + 1) / 2;
    for (int d = 0; d < half; d++) {
      const double angle = at * std::exp(-std::log(10000.0) * d / half);
      far[d] = float(std::sin(angle));
      if (half + d < width) far[half + d] = float(std::cos(angle));
    }
    return far.data();
  }

  void turn(float* out, const float* a, int n, int width, const int32_t* at, const Instruction& i) {
    const Table &cosine = *engine.tables[i.number[0]], &sine = *engine.tables[i.number[1]];
    const int k = width / i.number[2], half = k / 2;
    Numbers far(2 * half);
    for (int r = 0; r < n; r++) {
      const bool near = at[r] < cosine.rows;
      if (!near) waves(far, at[r]);
      const float* c = near ? &cosine.numbers[size_t(at[r]) * half] : &far[half];
      const float* s = near ? &sine.numbers[size_t(at[r]) * half] : &far[0];
      for (int head = 0; head < i.number[2]; head++) {
        const float* from = a + size_t(r) * width + head * k;
        float* to = out + size_t(r) * width + head * k;
        for (int d = 0; d < half; d++) {
          const float left = from[d], right = from[half + d];
          to[d] = left * c[d] - right * s[d];
          to[half + d] = left * s[d] + right * c[d];
        }
      }
    }
  }

  void cell(int kind, float* out, float* out_cell, const float* x, const float* h, const float* old, int n, int width) {
    const int gates = kind == GRU ? 3 : kind == LSTM ? 4 : 1;
    for (int r = 0; r < n; r++) {
      const float *xr = x + size_t(r) * gates * width, *hr = h + size_t(r) * gates * width;
      if (kind == GRU) kernels.gru(out + size_t(r) * width, xr, hr, old + size_t(r) * width, width);
      else if (kind == LSTM)
        kernels.lstm(out + size_t(r) * width, out_cell + size_t(r) * width, xr, hr, old + size_t(r) * width, width);
      else kernels.elman(out + size_t(r) * width, xr, hr, width);
    }
  }

  // ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────

  // Reads sources, longest first. `given` are states from elsewhere (of pictures) in place of tokens.
  void read(Reading& reading, const float* given) {
    const Program& program = engine.programs[0];
    if (given) {
      const int width = program.registers[engine.states].width;
      float* states = room(reading_room, program, engine.states, reading.tokens(), int(reading.sources.size()));
      std::memcpy(states, given, size_t(reading.tokens()) * width * sizeof(float));
    } else {
      for (const Instruction& i : program.instructions) read_one(reading, i);
    }
    for (Source* source : reading.sources) source->held.resize(engine.memories);
    for (const Instruction& i : engine.programs[1].instructions) read_one(reading, i);
  }

  void read_one(Reading& reading, const Instruction& i) {
    const Program& program = engine.programs[0];
    const int tokens = reading.tokens(), count = int(reading.sources.size());
    if (common(program, reading_room, i, tokens, count, reading.ids.data(), reading.at.data())) return;
    auto get = [&](int which) { return which < 0 ? nullptr : room(reading_room, program, which, tokens, count); };
    float *out = get(i.out), *a = get(i.a);
    const int width = i.out < 0 ? 0 : program.registers[i.out].width;
    switch (i.operation) {
      case WITHIN: within(reading, i, out, a, get(i.b), get(i.c)); break;
      case RUN: run(reading, i, out, a, get(i.number[3]), get(i.number[4]), width); break;
      case MEAN:
        for (int b = 0; b < count; b++)
          for (int d = 0; d < width; d++) {
            float sum = 0;
            for (int s = 0; s < reading.length[b]; s++) sum += a[size_t(reading.first[b] + s) * width + d];
            out[size_t(b) * width + d] = reading.length[b] ? sum / reading.length[b] : 0.0f;
          }
        break;
      case LAST:
        for (int b = 0; b < count; b++)
          if (reading.length[b])
            std::memcpy(out + size_t(b) * width, a + size_t(reading.first[b] + reading.length[b] - 1) * width,
                        width * sizeof(float));
          else std::memset(out + size_t(b) * width, 0, width * sizeof(float));
        break;
      case NEIGHBOURS: neighbours(reading, out, a, i.number[0], width / i.number[0]); break;
      case HOLD: hold(reading, i, a, get(i.b)); break;
      case OFFER: offer(places_of(reading, a)); break;
      case NGRAMS: ngrams(reading, i, out, a, width); break;
      default: break;
    }
  }

  // Vectors of tokens with those of the runs around them; regard/layers/ngrams.py has the same, with padding.
  void ngrams(const Reading& reading, const Instruction& i, float* out, const float* a, int width) {
    const Table& table = *engine.tables[i.number[0]];
    const int longest = i.number[1], buckets = i.number[2];
    Numbers sum(width);
    for (size_t b = 0; b < reading.length.size(); b++)
      for (int s = 0; s < reading.length[b]; s++) {
        const size_t place = size_t(reading.first[b] + s) * width;
        std::fill(sum.begin(), sum.end(), 0.0f);
        int window = 0;
        for (int count = 2; count <= longest; count++)
          for (int begin = s + 1 - count; begin <= s; begin++, window++) {
            const float* from = &table.numbers[size_t(bucket(reading, int(b), begin, count, buckets, window)) * width];
            for (int d = 0; d < width; d++) sum[d] += from[d];
          }
        for (int d = 0; d < width; d++) out[place + d] = a[place + d] + sum[d] * i.value;
      }
  }

  // The row of a run of tokens; beyond the ends of a source there is padding.
  static int64_t bucket(const Reading& reading, int source, int begin, int count, int buckets, int window) {
    constexpr int64_t SPREAD = 1000003, BLEND = 1640531527, BITS = (int64_t(1) << 31) - 1;
    int64_t hashed = count;
    for (int s = begin; s < begin + count; s++) {
      const bool inside = s >= 0 && s < reading.length[source];
      hashed = ((hashed * SPREAD) ^ ((inside ? reading.ids[reading.first[source] + s] : PAD) + 1)) & BITS;
    }
    hashed = ((hashed ^ (hashed >> 15)) * BLEND) & BITS;
    return (hashed ^ (hashed >> 13)) % buckets + int64_t(window) * buckets;
  }

  void across(const float* keys, int count, const Look& look, Held& held) {
    const int width = look.key_width * look.heads;
    held.count = count;
    held.stride = (count + 15) / 16 * 16;
    held.keys.assign(size_t(width) * held.stride, 0.0f);
    for (int s = 0; s < count; s++)
      for (int d = 0; d < width; d++) held.keys[size_t(d) * held.stride + s] = keys[size_t(s) * width + d];
    if (look.kind != DISTANCE) return;
    held.extra.assign(size_t(look.heads) * held.stride, 0.0f);
    for (int s = 0; s < count; s++)
      for (int d = 0; d < width; d++) {
        const float key = keys[size_t(s) * width + d];
        held.extra[size_t(d / look.key_width) * held.stride + s] -= 0.5f * key * key;
      }
  }

  void within(Reading& reading, const Instruction& i, float* out, const float* q, const float* k, const float* v) {
    const Look& look = engine.looks[i.number[0]];
    const int key_width = look.key_width * look.heads, width = look.value_width * look.heads;
    Held held;
    for (size_t b = 0; b < reading.sources.size(); b++) {
      const size_t first = reading.first[b];
      across(k + first * key_width, reading.length[b], look, held);
      float* room = weights_for(held.stride);
      for (int s = 0; s < reading.length[b]; s++)
        kernels.attend_across(out + (first + s) * width, q + (first + s) * key_width, held.keys.data(),
                              held.extra.empty() ? nullptr : held.extra.data(), v + first * width, held.count,
                              held.stride, s, look, room);
    }
  }

  void hold(Reading& reading, const Instruction& i, const float* keys, const float* values) {
    const Look& look = engine.looks[i.number[1]];
    const int key_width = look.key_width * look.heads, width = look.value_width * look.heads;
    for (size_t b = 0; b < reading.sources.size(); b++) {
      Held& held = reading.sources[b]->held[i.number[0]];
      across(keys + size_t(reading.first[b]) * key_width, reading.length[b], look, held);
      const float* from = values + size_t(reading.first[b]) * width;
      held.values.assign(from, from + size_t(reading.length[b]) * width);
    }
  }

  // What can be copied of sources that are read together.
  std::vector<Place> places_of(const Reading& reading, const float* states_now) {
    const int width = engine.linears[engine.pointer.key]->k;
    std::vector<Place> places;
    for (size_t b = 0; b < reading.sources.size(); b++)
      for (int s = reading.first[b]; s < reading.first[b] + reading.length[b]; s++)
        put(places, reading.sources[b], states_now + size_t(s) * width, reading.ids[s]);
    return places;
  }

  // What can be copied of what was fed to the first n rows; past its source, a row only writes.
  std::vector<Place> places_of(const int32_t* tokens, int n, const float* states_now) {
    const int width = engine.linears[engine.pointer.key]->k;
    std::vector<Place> places;
    for (int r = 0; r < n; r++)
      if (rows[r].at < rows[r].source->prefix)
        put(places, rows[r].source, states_now + size_t(r) * width, tokens[r]);
    return places;
  }

  // What can not be copied is never looked at, so that no key of it is made.
  void put(std::vector<Place>& places, Source* source, const float* state, int32_t token) {
    const int32_t copy = engine.pointer.copies[token];
    if (copy != PAD) places.push_back({source, state, copy});
  }

  // Keys of places, in one product.
  void offer(const std::vector<Place>& places) {
    const Linear& key = *engine.linears[engine.pointer.key];
    Numbers from;
    for (const Place& each : places) from.insert(from.end(), each.state, each.state + key.k);
    const float* keys = product(engine.pointer.key, from.data(), int(places.size()), queries);
    for (size_t s = 0; s < places.size(); s++) places[s].source->offer.add(keys + s * key.m, key.m, places[s].copy);
  }

  // A loop over each source, all side by side; sources are in order of length, so those that go on come first.
  void run(Reading& reading, const Instruction& i, float* out, const float* gates_in, float* final_h, float* final_c,
           int width) {
    const Linear& hidden = *engine.linears[i.number[0]];
    const int kind = i.number[1], gates = hidden.m, count = int(reading.sources.size());
    const bool backward = i.number[2];
    Numbers h(size_t(count) * width), c(kind == LSTM ? h.size() : 0), x(size_t(count) * gates), g(x.size());
    Numbers next(h.size()), next_c(c.size());
    int going = count;
    for (int t = 0; going; t++) {
      while (going && reading.length[going - 1] <= t) going--;
      for (int b = 0; b < going; b++) {
        const int place = reading.first[b] + (backward ? reading.length[b] - 1 - t : t);
        std::memcpy(&x[size_t(b) * gates], gates_in + size_t(place) * gates, gates * sizeof(float));
      }
      multiply(engine, hidden, h.data(), going, g.data());
      cell(kind, next.data(), next_c.data(), x.data(), g.data(), kind == LSTM ? c.data() : h.data(), going, width);
      std::copy_n(next.begin(), size_t(going) * width, h.begin());
      if (kind == LSTM) std::copy_n(next_c.begin(), size_t(going) * width, c.begin());
      for (int b = 0; b < going; b++) {
        const int place = reading.first[b] + (backward ? reading.length[b] - 1 - t : t);
        std::memcpy(out + size_t(place) * width, &h[size_t(b) * width], width * sizeof(float));
      }
    }
    std::copy(h.begin(), h.end(), final_h);
    if (kind == LSTM) std::copy(c.begin(), c.end(), final_c);
  }

  void neighbours(Reading& reading, float* out, const float* a, int kernel, int width) {
    for (size_t b = 0; b < reading.sources.size(); b++)
      for (int s = 0; s < reading.length[b]; s++)
        for (int k = 0; k < kernel; k++) {
          const int other = s + k - kernel / 2;
          float* to = out + (size_t(reading.first[b] + s) * kernel + k) * width;
          if (other < 0 || other >= reading.length[b]) std::memset(to, 0, width * sizeof(float));
          else std::memcpy(to, a + size_t(reading.first[b] + other) * width, width * sizeof(float));
        }
  }

  // ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  // Rows for sources that were just read, after those that are going already: one for each.
  void join(const Reading& reading) {
    const Program& program = engine.programs[0];
    const int count = int(reading.sources.size());
    for (size_t s = 0; s < states.size(); s++) {
      const int width = program.registers[engine.first_state[s]].width;
      const float* first = room(reading_room, program, engine.first_state[s], reading.tokens(), count);
      states[s].resize(rows.size() * width);
      states[s].insert(states[s].end(), first, first + size_t(count) * width);
    }
    for (Source* source : reading.sources) {
      source->keys.resize(engine.entries.size());
      source->values.resize(engine.entries.size());
      rows.emplace_back();
      rows.back().source = source;
    }
  }

  // Row r becomes what row index[r] was.
  void pick(const std::vector<int>& index) {
    bool same = index.size() == rows.size();
    for (size_t r = 0; same && r < index.size(); r++) same = index[r] == int(r);
    if (same) return;
    std::vector<int> uses(rows.size());
    for (int from : index) uses[from]++;
    std::vector<Row> kept(index.size());
    for (size_t r = 0; r < index.size(); r++)
      if (--uses[index[r]]) kept[r] = rows[index[r]];
      else kept[r] = std::move(rows[index[r]]);
    rows.swap(kept);
    for (size_t s = 0; s < states.size(); s++) {
      const int width = engine.programs[2].registers[engine.state[s]].width;
      Numbers picked(index.size() * size_t(width));
      for (size_t r = 0; r < index.size(); r++)
        std::memcpy(&picked[r * width], &states[s][size_t(index[r]) * width], width * sizeof(float));
      states[s].swap(picked);
    }
  }

  // Feeds one token to each of the first n rows: the decoder's states, a vector for each of them.
  const float* feed(const int32_t* tokens, int n) {
    const Program& program = engine.programs[2];
    std::vector<int32_t> at(n);
    for (int r = 0; r < n; r++) {
      at[r] = rows[r].at;
      if (!engine.entries.empty()) rows[r].entries.push_back(rows[r].source->entries++);
    }
    for (size_t s = 0; s < states.size(); s++) {
      float* to = room(step_room, program, engine.state[s], 0, n);
      std::memcpy(to, states[s].data(), size_t(n) * program.registers[engine.state[s]].width * sizeof(float));
    }
    for (const Instruction& i : program.instructions) {
      if (common(program, step_room, i, 0, n, tokens, at.data())) continue;
      if (i.operation == OFFER) {
        offer(places_of(tokens, n, room(step_room, program, i.a, 0, n)));
        continue;
      }
      float *out = room(step_room, program, i.out, 0, n), *q = room(step_room, program, i.a, 0, n);
      if (i.operation == SELF)
        self(i, n, out, q, room(step_room, program, i.b, 0, n), room(step_room, program, i.c, 0, n));
      if (i.operation == CROSS) cross(i, n, out, q);
    }
    for (size_t s = 0; s < states.size(); s++) {
      const float* from = room(step_room, program, engine.next_state[s], 0, n);
      std::copy_n(from, size_t(n) * program.registers[engine.state[s]].width, states[s].begin());
    }
    for (int r = 0; r < n; r++) rows[r].at++;
    return room(step_room, program, engine.last, 0, n);
  }

  void self(const Instruction& i, int n, float* out, const float* q, const float* k, const float* v) {
    const Look& look = engine.looks[i.number[1]];
    const int key_width = look.key_width * look.heads, width = look.value_width * look.heads;
    for (int r = 0; r < n; r++) {
      Row& row = rows[r];
      Numbers &keys = row.source->keys[i.number[0]], &values = row.source->values[i.number[0]];
      const size_t entry = row.entries.back();
      if (keys.size() < (entry + 1) * key_width) keys.resize((entry + 1) * key_width);
      if (values.size() < (entry + 1) * width) values.resize((entry + 1) * width);
      std::memcpy(&keys[entry * key_width], k + size_t(r) * key_width, key_width * sizeof(float));
      std::memcpy(&values[entry * width], v + size_t(r) * width, width * sizeof(float));
      const int count = int(row.entries.size());
      kernels.attend_entries(out + size_t(r) * width, q + size_t(r) * key_width, keys.data(), values.data(),
                             row.entries.data(), count, look, weights_for(count));
    }
  }

  void cross(const Instruction& i, int n, float* out, const float* q) {
    const Look& look = engine.looks[i.number[1]];
    const int key_width = look.key_width * look.heads, width = look.value_width * look.heads;
    for (int r = 0; r < n; r++) {
      const Held& held = rows[r].source->held[i.number[0]];
      kernels.attend_across(out + size_t(r) * width, q + size_t(r) * key_width, held.keys.data(),
                            held.extra.empty() ? nullptr : held.extra.data(), held.values.data(), held.count,
                            held.stride, 0, look, weights_for(held.stride));
    }
  }

  // Logits of what follows each state, or log probabilities where a copy head points into the source whose it is.
  float* logits_of(const float* states_now, const std::vector<const Source*>& whose) {
    float* made = product(engine.output, states_now, int(whose.size()), logits);
    if (engine.copies()) copy(made, states_now, whose);
    return made;
  }

  float* product(int linear, const float* states_now, int n, Numbers& to) {
    const Linear& with = *engine.linears[linear];
    if (to.size() < size_t(n) * with.m) to.resize(size_t(n) * with.m);
    multiply(engine, with, states_now, n, to.data());
    return to.data();
  }

  // Mixes with logits what is copied.
  void copy(float* made, const float* states_now, const std::vector<const Source*>& whose) {
    const Pointer& pointer = engine.pointer;
    const int n = int(whose.size()), width = engine.linears[pointer.query]->m;
    const float* query = product(pointer.query, states_now, n, queries);
    const float* gate = product(pointer.gate, states_now, n, gates);
    for (int r = 0; r < n; r++, made += vocabulary()) {
      const Offer& offer = whose[r]->offer;
      gather(offer, query + size_t(r) * width);
      kernels.mix(made, vocabulary(), mass.data(), offer.tokens.data(), int(offer.tokens.size()), gate[r]);
    }
  }

  // How much a query points at each different token of an offer, all its places added up in their order.
  void gather(const Offer& offer, const float* query) {
    mass.assign(offer.tokens.size(), 0.0f);
    if (!offer.places()) return;
    float* weight = weights_for(offer.places());
    kernels.point(weight, query, offer.keys.data(), offer.places(), engine.looks[engine.pointer.look]);
    for (int s = 0; s < offer.places(); s++) mass[offer.number[s]] += weight[s];
  }

  int vocabulary() const { return engine.linears[engine.output]->m; }
};

// ── search ──────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Wish {  // as regard/search/rules.py and beam.py have it
  int32_t width, batch, workers, first, min_length, never_count, prefix_count;
  double penalty;
  const int32_t *never, *prefix;
  const volatile int32_t* stop;  // another thread may set it: then nothing more is written
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without the end
  std::vector<float> logs;      // with it
  double score;
};

struct Node {  // one written token, and what was written before it
  int before;
  int32_t token;
  float log;
};

struct Job {  // one source on its way
  Source source;
  int limit = 0, at = 0, fed = 0;
  const int32_t* ids = nullptr;
  int length = 0;
  std::vector<Node> nodes;
  std::vector<Hypothesis>* finished = nullptr;
};

struct Line {  // one row of the search, beside the machine's own
  Job* job;
  int node;
  double sum;
  int32_t token;
};

struct Candidate {
  double total;
  int row;
  int32_t token;
  float log;
};

bool better(const Candidate& a, const Candidate& b) {
  return a.total != b.total ? a.total > b.total : a.row != b.row ? a.row < b.row : a.token < b.token;
}

double normalise(double sum, int length, double penalty) { return sum / std::pow(std::max(length, 1), penalty); }

struct Sources {  // what is to be decoded, from outside
  const int32_t *ids, *offsets, *limits;
  const float* states;  // of pictures, in place of ids
  int32_t count;
};

Reading reading_of(const Engine& engine, const Sources& from, const std::vector<int>& numbers,
                   const std::vector<Source*>& sources) {
  Reading reading;
  reading.sources = sources;
  for (int number : numbers) {
    const int first = from.offsets[number], length = engine.prefix ? 0 : from.offsets[number + 1] - first;
    sources[reading.length.size()]->prefix = engine.prefix ? from.offsets[number + 1] - first : 0;
    reading.first.push_back(reading.tokens());
    reading.length.push_back(length);
    for (int s = 0; s < length; s++) {
      if (from.ids) reading.ids.push_back(from.ids[first + s]);
      reading.at.push_back(s);
    }
  }
  return reading;
}

// States from outside of the sources that are read together, one after the other; nothing where there are tokens.
Numbers given_states(const Engine& engine, const Sources& from, const std::vector<int>& numbers) {
  Numbers given;
  if (!from.states) return given;
  const size_t width = engine.programs[0].registers[engine.states].width;
  for (int number : numbers)
    given.insert(given.end(), from.states + from.offsets[number] * width,
                 from.states + from.offsets[number + 1] * width);
  return given;
}

struct Search {  // one worker: it takes sources from the common queue until there are none
  const Engine& engine;
  const Sources& from;
  const Wish& wish;
  const std::vector<int>& order;
  std::atomic<int>& next;
  std::vector<std::vector<Hypothesis>>& found;
  Machine machine;
  std::vector<Line> lines;
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<char> forbidden;
  std::vector<Total> totals;

  Search(const Engine& e, const Sources& s, const Wish& w, const std::vector<int>& o, std::atomic<int>& n,
         std::vector<std::vector<Hypothesis>>& f)
      : engine(e), from(s), wish(w), order(o), next(n), found(f), machine(e) {}

  void work() {
    while (!*wish.stop) {
      const int free = wish.batch - int(jobs.size());
      if (jobs.empty() || free * 4 >= wish.batch) fill(free);
      if (lines.empty()) return;
      step();
    }
  }

  void fill(int wanted) {
    if (next >= int(order.size())) return;  // counting on would run over
    const int first = next.fetch_add(wanted), last = std::min(first + wanted, int(order.size()));
    if (first >= last) return;
    const std::vector<int> numbers(order.begin() + first, order.begin() + last);
    std::vector<Source*> sources;
    for (int number : numbers) {
      jobs.push_back(std::make_unique<Job>());
      Job& job = *jobs.back();
      job.limit = std::max(from.limits[number], wish.prefix_count);
      job.finished = &found[number];
      if (engine.prefix) {
        job.ids = from.ids + from.offsets[number];
        job.length = from.offsets[number + 1] - from.offsets[number];
      }
      sources.push_back(&job.source);
      lines.push_back({&job, -1, 0.0, job.length ? job.ids[0] : wish.first});
    }
    Reading reading = reading_of(engine, from, numbers, sources);
    const Numbers given = given_states(engine, from, numbers);
    machine.read(reading, from.states ? given.data() : nullptr);
    machine.join(reading);
  }

  void step() {
    const int n = int(lines.size());
    std::vector<int32_t> tokens(n);
    for (int r = 0; r < n; r++) tokens[r] = lines[r].token;
    const float* states = machine.feed(tokens.data(), n);
    std::vector<int> index, said(n, -1);  // rows that go on; for each row which logits are its own
    int speaking = 0;
    for (int r = 0; r < n; r++)
      if (lines[r].job->fed >= lines[r].job->length) said[r] = speaking++;
    const float* logits = speak(states, said, n, speaking);
    std::vector<Line> going;
    for (int first = 0; first < n;) {
      Job& job = *lines[first].job;
      int last = first;
      while (last < n && lines[last].job == &job) last++;
      if (said[first] < 0) {
        job.fed++;
        index.push_back(first);
        going.push_back(lines[first]);
        going.back().token = job.fed < job.length ? job.ids[job.fed] : wish.first;
      } else {
        const float* own = logits + size_t(said[first]) * machine.vocabulary();
        advance(job, first, last, own, &totals[said[first]], index, going);
      }
      first = last;
    }
    machine.pick(index);
    lines.swap(going);
    jobs.erase(std::remove_if(jobs.begin(), jobs.end(), [](const std::unique_ptr<Job>& job) { return job->limit < 0; }),
               jobs.end());
  }

  // Logits of the rows that are past their source, and in `totals` what makes log probabilities of them.
  const float* speak(const float* states, const std::vector<int>& said, int n, int speaking) {
    const int width = engine.programs[2].registers[engine.last].width;
    std::vector<const Source*> whose;
    for (int r = 0; r < n; r++)
      if (said[r] >= 0) whose.push_back(machine.rows[r].source);
    if (speaking < n) {
      machine.other.resize(size_t(speaking) * width + 1);
      for (int r = 0; r < n; r++)
        if (said[r] >= 0)
          std::memcpy(&machine.other[size_t(said[r]) * width], states + size_t(r) * width, width * sizeof(float));
      states = machine.other.data();
    }
    float* logits = machine.logits_of(states, whose);
    totals.assign(speaking, {0.0f, 0.0f});
    for (int r = 0; r < speaking; r++) {
      float* own = logits + size_t(r) * machine.vocabulary();
      const bool mixed = engine.copies() && own[0] == own[0];  // these are log probabilities already, unless lost
      if (!mixed) totals[r] = machine.kernels.log_total(own, machine.vocabulary());
    }
    return logits;
  }

  // The best continuations of one source: ended ones are set apart, the others go on.
  void advance(Job& job, int first, int last, const float* logits, const Total* total, std::vector<int>& index,
               std::vector<Line>& going) {
    std::vector<Candidate> best = candidates(job, first, last, logits, total);
    double best_live = -INFINITY;
    std::vector<Line> live;
    std::vector<int> from_row;
    for (const Candidate& each : best) {
      const Line& before = lines[each.row];
      if (each.token == END) {
        finish(job, before.node, each);
        continue;
      }
      job.nodes.push_back({before.node, each.token, each.log});
      live.push_back({&job, int(job.nodes.size()) - 1, each.total, each.token});
      from_row.push_back(each.row);
      best_live = std::max(best_live, each.total);
    }
    job.at++;
    if (done(job, best_live)) {
      job.limit = -1;
      return;
    }
    going.insert(going.end(), live.begin(), live.end());
    index.insert(index.end(), from_row.begin(), from_row.end());
  }

  // The `width` best pairs of a row and a token, best first; of equal ones the earlier row, then the lower token.
  std::vector<Candidate> candidates(const Job& job, int first, int last, const float* logits, const Total* total) {
    const int vocabulary = machine.vocabulary();
    std::vector<Candidate> best;
    const bool given = job.at < wish.prefix_count, over = job.at >= job.limit;
    for (int r = first; r < last; r++, logits += vocabulary, total++) {
      if (given || over) keep(best, r, given ? wish.prefix[job.at] : int32_t(END), logits, *total);
      else open_choice(best, r, logits, *total, job.at < wish.min_length);
    }
    std::sort(best.begin(), best.end(), better);
    return best;
  }

  void keep(std::vector<Candidate>& best, int row, int32_t token, const float* logits, const Total& total) {
    const float log = total.log(logits[token]);
    const Candidate each = {lines[row].sum + double(log), row, token, log};
    if (int(best.size()) == wish.width && !better(each, best.front())) return;
    best.push_back(each);
    std::push_heap(best.begin(), best.end(), better);  // the worst stands in front
    if (int(best.size()) <= wish.width) return;
    std::pop_heap(best.begin(), best.end(), better);
    best.pop_back();
  }

  void open_choice(std::vector<Candidate>& best, int row, const float* logits, const Total& total, bool too_short) {
    const int vocabulary = machine.vocabulary();
    bool any = false;
    for (int token = 0; token < vocabulary; token++) {
      token = machine.kernels.above(logits, vocabulary, bar(best, row, total), token);
      if (token >= vocabulary) break;
      if (forbidden[token] || (token == END && too_short)) continue;
      any = true;
      keep(best, row, token, logits, total);
    }
    if (any) return;
    for (int token = 0; token < vocabulary; token++)
      if (!forbidden[token] && !(token == END && too_short)) return;
    keep(best, row, END, logits, total);  // there is no way on but the end
  }

  // A logit that no further candidate of this row may lie below; a hair lower than it might be.
  float bar(const std::vector<Candidate>& best, int row, const Total& total) const {
    if (int(best.size()) < wish.width) return -INFINITY;
    const double far = double(total.most) + total.sum, needed = best.front().total - lines[row].sum + far;
    return float(needed - 1e-6 * (1.0 + std::fabs(needed) + std::fabs(far)));
  }

  void finish(Job& job, int node, const Candidate& end) {
    Hypothesis made;
    for (int at = node; at >= 0; at = job.nodes[at].before) {
      made.tokens.push_back(job.nodes[at].token);
      made.logs.push_back(job.nodes[at].log);
    }
    std::reverse(made.tokens.begin(), made.tokens.end());
    std::reverse(made.logs.begin(), made.logs.end());
    made.logs.push_back(end.log);
    made.score = normalise(end.total, int(made.logs.size()), wish.penalty);
    std::vector<Hypothesis>& all = *job.finished;
    auto place = std::find_if(all.begin(), all.end(), [&](const Hypothesis& other) {
      return made.score != other.score ? made.score > other.score : made.tokens < other.tokens;
    });
    all.insert(place, std::move(made));
    if (int(all.size()) > wish.width) all.pop_back();
  }

  // A live one can only lose log probability; dividing by the longest length is the best it can hope for.
  bool done(const Job& job, double best_live) const {
    if (best_live == -INFINITY) return true;
    if (int(job.finished->size()) < wish.width) return false;
    return normalise(best_live, job.limit + 1, wish.penalty) <= job.finished->back().score;
  }
};

struct Found {
  std::vector<std::vector<Hypothesis>> hypotheses;
};

}  // namespace

// ── from outside ────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

// Whether `work` came to its end: nothing that C++ throws, memory above all, may cross the border to Python.
template <typename Work>
int32_t whole(Work work) {
  try {
    work();
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

extern "C" {

// What Python and this file must agree on.
void regard_sizes(int32_t* sizes) {
  sizes[0] = sizeof(Instruction);
  sizes[1] = sizeof(Register);
  sizes[2] = sizeof(Wish);
}

int32_t regard_level() { return best_level(); }

void* regard_engine(int32_t level) {
  Engine* engine = new Engine();
  engine->kernels = &kernels_of(std::min(level, best_level()));
  return engine;
}

void regard_engine_free(void* engine) { delete static_cast<Engine*>(engine); }

// A matrix of m rows and k columns; with `rounds` as numbers in [-127, 127] and a scale for each row of it.
int32_t regard_linear(void* to, const float* weight, const float* bias, int32_t k, int32_t m, int32_t rounds) {
  return whole([&] {
    Engine& engine = *static_cast<Engine*>(to);
    const Kernels& kernels = *engine.kernels;
    auto linear = std::make_unique<Linear>();
    const int padded = (m + kernels.columns - 1) / kernels.columns * kernels.columns;
    linear->k = k;
    linear->m = m;
    linear->whole = rounds;
    linear->bias.assign(padded, 0.0f);
    if (bias) std::copy_n(bias, m, linear->bias.begin());
    if (rounds) {
      std::vector<int8_t> rounded(size_t(k) * m);
      linear->scale.assign(padded, 0.0f);
      linear->start.assign(padded, 0);
      for (int row = 0; row < m; row++) {
        const float* from = weight + size_t(row) * k;
        float most = 0;
        for (int i = 0; i < k; i++) most = std::max(most, std::fabs(from[i]));
        linear->scale[row] = most / 127.0f;
        int32_t sum = 0;
        for (int i = 0; i < k; i++) {
          const int q = most > 0 ? int(std::lrintf(from[i] * (127.0f / most))) : 0;
          rounded[size_t(row) * k + i] = int8_t(q);
          sum += q;
        }
        linear->start[row] = -128 * sum;
      }
      linear->packed_whole.resize(kernels.packed_size(k, m, true));
      kernels.pack_whole(linear->packed_whole.data(), rounded.data(), k, m);
    } else {
      linear->packed.resize(kernels.packed_size(k, m, false) / sizeof(float));
      kernels.pack(linear->packed.data(), weight, k, m);
    }
    engine.linears.push_back(std::move(linear));
  });
}

int32_t regard_table(void* to, const float* numbers, int32_t rows, int32_t width) {
  return whole([&] {
    Engine& engine = *static_cast<Engine*>(to);
    auto table = std::make_unique<Table>();
    table->rows = rows;
    table->width = width;
    table->numbers.assign(numbers, numbers + size_t(rows) * width);
    engine.tables.push_back(std::move(table));
  });
}

int32_t regard_look(void* to, int32_t kind, int32_t heads, int32_t key_width, int32_t value_width, float scale,
                    int32_t vector, int32_t bias, int32_t rate) {
  Engine& engine = *static_cast<Engine*>(to);
  auto numbers = [&](int32_t table) { return table < 0 ? nullptr : engine.tables[table]->numbers.data(); };
  const int32_t reach = bias < 0 ? 0 : (engine.tables[bias]->rows - 1) / 2;
  engine.looks.push_back({kind, heads, key_width, value_width, reach, scale, numbers(vector), numbers(bias),
                          numbers(rate)});
  return int32_t(engine.looks.size()) - 1;
}

void regard_program(void* to, int32_t which, const Register* registers, int32_t register_count,
                    const Instruction* instructions, int32_t instruction_count) {
  Program& program = static_cast<Engine*>(to)->programs[which];
  program.registers.assign(registers, registers + register_count);
  program.instructions.assign(instructions, instructions + instruction_count);
}

void regard_finish(void* to, int32_t states, int32_t last, int32_t output, int32_t memories, int32_t entries,
                   int32_t prefix, const int32_t* first_state, const int32_t* state, const int32_t* next_state,
                   int32_t state_count) {
  Engine& engine = *static_cast<Engine*>(to);
  engine.states = states;
  engine.last = last;
  engine.output = output;
  engine.memories = memories;
  engine.entries.assign(entries, 0);
  engine.prefix = prefix;
  engine.first_state.assign(first_state, first_state + state_count);
  engine.state.assign(state, state + state_count);
  engine.next_state.assign(next_state, next_state + state_count);
}

// A copy head: `copies` has for each token of the source the target's.
int32_t regard_pointer(void* to, int32_t query, int32_t key, int32_t gate, int32_t look, const int32_t* copies,
                       int32_t count) {
  return whole([&] {
    static_cast<Engine*>(to)->pointer = {query, key, gate, look, std::vector<int32_t>(copies, copies + count)};
  });
}

// Every source from its first token to its last, by as many workers as are wished for.
void* regard_search(const void* from, const int32_t* ids, const int32_t* offsets, const int32_t* limits,
                    const float* states, int32_t count, const Wish* wish) {
  const Engine& engine = *static_cast<const Engine*>(from);
  const Sources sources = {ids, offsets, limits, states, count};
  Found* found = new Found();
  found->hypotheses.resize(count);
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return offsets[a + 1] - offsets[a] > offsets[b + 1] - offsets[b];
  });
  std::atomic<int> next{0};
  std::atomic<bool> failed{false};
  auto work = [&] {
    try {
      Search search(engine, sources, *wish, order, next, found->hypotheses);
      search.forbidden.assign(search.machine.vocabulary(), 0);
      for (int i = 0; i < wish->never_count; i++) search.forbidden[wish->never[i]] = 1;
      search.work();
    } catch (const std::exception&) {  // no memory: none may cross the border to Python
      failed = true;
      next = count;
    }
  };
  std::vector<std::thread> others;
  try {
    for (int worker = 1; worker < wish->workers; worker++) others.emplace_back(work);
  } catch (const std::exception&) {  // as many as there could be
  }
  work();
  for (std::thread& other : others) other.join();
  if (!failed) return found;
  delete found;
  return nullptr;
}

// How many hypotheses each source has.
void regard_found(const void* from, int32_t* counts) {
  for (const auto& each : static_cast<const Found*>(from)->hypotheses) *counts++ = int32_t(each.size());
}

// The length of each, its end included, and its score: source after source, best first.
void regard_found_lengths(const void* from, int32_t* lengths, double* scores) {
  for (const auto& source : static_cast<const Found*>(from)->hypotheses)
    for (const Hypothesis& each : source) {
      *lengths++ = int32_t(each.logs.size());
      *scores++ = each.score;
    }
}

// Tokens and log probabilities of all, one after the other, each with its end.
void regard_found_texts(const void* from, int32_t* tokens, float* logs) {
  for (const auto& source : static_cast<const Found*>(from)->hypotheses)
    for (const Hypothesis& each : source) {
      tokens = std::copy(each.tokens.begin(), each.tokens.end(), tokens);
      *tokens++ = END;
      logs = std::copy(each.logs.begin(), each.logs.end(), logs);
    }
}

void regard_found_free(void* found) { delete static_cast<Found*>(found); }

// ── step by step ────────────────────────────────────────────────────────────────────────────────────────────────────

struct Session {
  Machine machine;
  std::vector<std::unique_ptr<Source>> sources;
  explicit Session(const Engine& engine) : machine(engine) {}
};

// Sources read, a row for each, in their order.
void* regard_session(const void* from, const int32_t* ids, const int32_t* offsets, const float* states, int32_t count) {
  std::unique_ptr<Session> session;
  const int32_t done = whole([&] {
    const Engine& engine = *static_cast<const Engine*>(from);
    session = std::make_unique<Session>(engine);
    Machine& machine = session->machine;
    const Sources sources = {ids, offsets, nullptr, states, count};
    std::vector<int> order(count), back(count);
    std::iota(order.begin(), order.end(), 0);
    auto length = [&](int number) { return offsets[number + 1] - offsets[number]; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) > length(b); });
    std::vector<Source*> made;
    for (int r = 0; r < count; r++) {
      session->sources.push_back(std::make_unique<Source>());
      made.push_back(session->sources.back().get());
      back[order[r]] = r;
    }
    Reading reading = reading_of(engine, sources, order, made);
    const Numbers given = given_states(engine, sources, order);
    machine.read(reading, states ? given.data() : nullptr);
    machine.join(reading);
    for (int t = 0; engine.prefix && count && t < length(order[0]); t++) {
      std::vector<int32_t> tokens;
      while (int(tokens.size()) < count && length(order[tokens.size()]) > t)
        tokens.push_back(ids[offsets[order[tokens.size()]] + t]);
      machine.feed(tokens.data(), int(tokens.size()));
    }
    machine.pick(back);
  });
  return done ? session.release() : nullptr;
}

// Row r goes on from what row index[r] was, with a token of its own: logits of the next.
int32_t regard_step(void* from, const int32_t* index, const int32_t* tokens, int32_t count, float* logits) {
  return whole([&] {
    Machine& machine = static_cast<Session*>(from)->machine;
    machine.pick(std::vector<int>(index, index + count));
    const float* states = machine.feed(tokens, count);
    std::vector<const Source*> whose;
    for (const Row& row : machine.rows) whose.push_back(row.source);
    const float* made = machine.logits_of(states, whose);
    std::copy_n(made, size_t(count) * machine.vocabulary(), logits);
  });
}

void regard_session_free(void* session) { delete static_cast<Session*>(session); }

// States of an encoder alone, token after token.
int32_t regard_states(const void* from, const int32_t* ids, const int32_t* offsets, int32_t count, float* states) {
  return whole([&] {
    const Engine& engine = *static_cast<const Engine*>(from);
    Session session(engine);
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    auto length = [&](int number) { return offsets[number + 1] - offsets[number]; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) > length(b); });
    std::vector<std::unique_ptr<Source>> sources;
    std::vector<Source*> made;
    for (int r = 0; r < count; r++) {
      sources.push_back(std::make_unique<Source>());
      made.push_back(sources.back().get());
    }
    Reading reading = reading_of(engine, {ids, offsets, nullptr, nullptr, count}, order, made);
    session.machine.read(reading, nullptr);
    const Program& program = engine.programs[0];
    const size_t width = program.registers[engine.states].width;
    Machine& machine = session.machine;
    const float* found = machine.room(machine.reading_room, program, engine.states, reading.tokens(), count);
    for (int r = 0; r < count; r++)
      std::copy_n(found + reading.first[r] * width, length(order[r]) * width, states + offsets[order[r]] * width);
  });
}

int32_t regard_output(const void* from, const float* states, int32_t count, float* logits) {
  return whole([&] {
    const Engine& engine = *static_cast<const Engine*>(from);
    multiply(engine, *engine.linears[engine.output], states, count, logits);
  });
}

}  // extern "C"
