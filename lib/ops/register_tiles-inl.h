// Products of small matrices whose results stay in registers: single numbers of A meet vectors of B. Text for a
// namespace whose instruction set is chosen around it (a Highway target, or a region with a target attribute), so it
// has neither guard nor namespace of its own; <cstdint> comes before it.
//
// Arithmetic says what is multiplied:
//   Element                       an entry of A and B: a number, or a pair of numbers along the inner index
//   Vector, Sum                   vectors of entries of B, of results
//   int64_t lanes()               entries of a vector
//   Sum zero(); Vector load(const Element*); Vector broadcast(Element);
//   Sum multiply_add(Vector, Vector, Sum); void store(Sum, float*); void add(Sum, float*)

// Where the entries (0 … kCount - 1, p) of A lie for the present p: rows `step` apart (kTransposed false), or next to
// each other with p `step` apart.
template <class Element, int kCount, bool kTransposed>
struct LeftOperand {
  static constexpr int kBases = kTransposed ? 1 : (kCount + 3) / 4;
  const Element* base[kBases];  // of every fourth row: x86 addresses reach the three after it
  int64_t step;

  LeftOperand(const Element* a, int64_t row_step) : step(row_step) {
    for (int i = 0; i < kBases; ++i) base[i] = a + 4 * i * step;
  }
  Element operator()(int row) const { return kTransposed ? base[0][row] : base[row / 4][(row % 4) * step]; }
  void next() {
    for (int i = 0; i < kBases; ++i) base[i] += kTransposed ? step : 1;
  }
};

template <class Element>
struct TileOperands {
  const Element *a, *b;
  int64_t a_step, b_step, depth;  // depth: of the inner index, in entries
  int64_t b_next;                 // from a pair of vectors of a row of B to the next pair
  float* c;
  int64_t c_step;
  bool add;
};

// What the operands say is read once, before the loop: a compiler may not assume that stores to C leave it as it is.
// All instructions but the multiply-adds are overhead, which a core shared with another hardware thread feels first.
template <class Arithmetic, int kCount, int kVectors, bool kTransposed, class Element>
__attribute__((always_inline)) inline void register_tile(const TileOperands<Element>& o, int64_t row, int64_t column) {
  using Sum = typename Arithmetic::Sum;
  using Vector = typename Arithmetic::Vector;
  constexpr int kPairs = (kVectors + 1) / 2;
  const int64_t lanes = Arithmetic::lanes();
  Sum sum[kCount][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Arithmetic::zero();
  }
  LeftOperand<Element, kCount, kTransposed> left(o.a + row * (kTransposed ? 1 : o.a_step), o.a_step);
  const Element* b[kPairs];
  for (int i = 0; i < kPairs; ++i) b[i] = o.b + column + i * o.b_next;
  const int64_t depth = o.depth, b_step = o.b_step, c_step = o.c_step;
  float* const c = o.c + row * c_step + column;
  for (int64_t p = 0; p < depth; ++p) {
    Vector right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = Arithmetic::load(b[v / 2] + v % 2 * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      const Vector x = Arithmetic::broadcast(left(i));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] = Arithmetic::multiply_add(x, right[v], sum[i][v]);
    }
    left.next();
    for (int i = 0; i < kPairs; ++i) b[i] += b_step;
  }
  const auto write = [&](const auto& put) {
    float* place = c;
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i, place += c_step) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) put(sum[i][v], place + v * lanes);
    }
  };
  if (o.add) {
    write([](Sum x, float* place) { Arithmetic::add(x, place); });
  } else {
    write([](Sum x, float* place) { Arithmetic::store(x, place); });
  }
}

// The rows that are left after whole tiles.
template <class Arithmetic, int kCount, int kVectors, bool kTransposed, class Element>
inline void last_rows(const TileOperands<Element>& o, int64_t row, int64_t column, int64_t count) {
  if constexpr (kCount > 0) {
    if (count == kCount) {
      register_tile<Arithmetic, kCount, kVectors, kTransposed>(o, row, column);
    } else {
      last_rows<Arithmetic, kCount - 1, kVectors, kTransposed>(o, row, column, count);
    }
  }
}

// All m rows of the columns that kVectors vectors hold.
template <class Arithmetic, int kRows, int kVectors, bool kTransposed, class Element>
void tile_rows(const TileOperands<Element>& o, int64_t m, int64_t column) {
  int64_t row = 0;
  for (; row + kRows <= m; row += kRows) register_tile<Arithmetic, kRows, kVectors, kTransposed>(o, row, column);
  last_rows<Arithmetic, kRows - 1, kVectors, kTransposed>(o, row, column, m - row);
}

// All of the n columns, n a multiple of the lanes; kRows rows fit into registers with two vectors, half as many with
// four, which take a tenth fewer instructions for the same products.
template <class Arithmetic, int kRows, bool kFourVectors, bool kTransposed, class Element>
inline void tile_product(const TileOperands<Element>& o, int64_t m, int64_t n) {
  const int64_t lanes = Arithmetic::lanes();
  int64_t column = 0;
  if constexpr (kFourVectors) {
    for (; column + 4 * lanes <= n; column += 4 * lanes) {
      tile_rows<Arithmetic, kRows / 2, 4, kTransposed>(o, m, column);
    }
  }
  for (; column + 2 * lanes <= n; column += 2 * lanes) {
    tile_rows<Arithmetic, kRows, 2, kTransposed>(o, m, column);
  }
  if (column < n) tile_rows<Arithmetic, kRows, 1, kTransposed>(o, m, column);
}
