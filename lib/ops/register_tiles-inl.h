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

// Where entry (row, p) of A lies: rows `step` apart (kTransposed false), or next to each other with p `step` apart.
template <class Element, int kCount, bool kTransposed>
struct LeftOperand {
  const Element* base[(kCount + 3) / 4];  // of every fourth row: x86 addresses reach the three after it
  int64_t step;

  LeftOperand(const Element* a, int64_t row_step) : step(row_step) {
    for (int i = 0; i < (kCount + 3) / 4; ++i) base[i] = a + 4 * i * (kTransposed ? 1 : step);
  }
  Element operator()(int row, int64_t p) const {
    if constexpr (kTransposed) {
      return base[0][row + p * step];
    } else {
      return base[row / 4][(row % 4) * step + p];
    }
  }
};

template <class Element>
struct TileOperands {
  const Element *a, *b;
  int64_t a_step, b_step, depth;  // depth: of the inner index, in entries
  float* c;
  int64_t c_step;
  bool add;
};

template <class Arithmetic, int kCount, int kVectors, bool kTransposed, class Element>
inline void register_tile(const TileOperands<Element>& o, int64_t row, int64_t column) {
  using Sum = typename Arithmetic::Sum;
  using Vector = typename Arithmetic::Vector;
  const int64_t lanes = Arithmetic::lanes();
  Sum sum[kCount][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Arithmetic::zero();
  }
  const LeftOperand<Element, kCount, kTransposed> left(o.a + row * (kTransposed ? 1 : o.a_step), o.a_step);
  const Element* b = o.b + column;
  for (int64_t p = 0; p < o.depth; ++p) {
    Vector right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = Arithmetic::load(b + p * o.b_step + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      const Vector x = Arithmetic::broadcast(left(i, p));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] = Arithmetic::multiply_add(x, right[v], sum[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* place = o.c + (row + i) * o.c_step + column + v * lanes;
      o.add ? Arithmetic::add(sum[i][v], place) : Arithmetic::store(sum[i][v], place);
    }
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

// All of the n columns, n a multiple of the lanes.
template <class Arithmetic, int kRows, bool kTransposed, class Element>
inline void tile_product(const TileOperands<Element>& o, int64_t m, int64_t n) {
  const int64_t lanes = Arithmetic::lanes();
  int64_t column = 0;
  for (; column + 2 * lanes <= n; column += 2 * lanes) {
    tile_rows<Arithmetic, kRows, 2, kTransposed>(o, m, column);
  }
  if (column < n) tile_rows<Arithmetic, kRows, 1, kTransposed>(o, m, column);
}
