#include "fleetx/ops/lib/pieces.h"

#include <algorithm>
#include <cstring>

#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

// From this length on a row's pieces are copied one piece after the other, each by all threads.
constexpr int64_t kLongRow = 64 << 10;

enum class Direction : uint8_t { kJoin, kCut };

class PiecesKernel final : public kernel::Kernel {
 public:
  PiecesKernel(kernel::Prepare& p, std::string_view whole, std::string_view pieces, int axis,
               Direction direction)
      : direction_(direction) {
    const bool join = direction == Direction::kJoin;
    whole_ = join ? p.output(whole) : p.input(whole);
    const size_t count = join ? p.count(pieces) : p.out_count(pieces);
    for (size_t i = 0; i < count; ++i) {
      const kernel::Desc& desc = join ? p.in(pieces, i) : p.out(pieces, i);
      rows_ = desc.shape.numel(0, axis);
      const auto bytes =
          desc.shape.numel(axis, desc.shape.rank()) * static_cast<int64_t>(size_of(desc.dtype));
      pieces_.push_back({join ? p.input(pieces, i) : p.output(pieces, i), row_bytes_, bytes, {}});
      row_bytes_ += bytes;
    }
    for (Piece& piece : pieces_) {
      const int64_t from = join ? piece.bytes : row_bytes_, to = join ? row_bytes_ : piece.bytes;
      piece.copy = StridedCopy(1, {{rows_, from, to}, {piece.bytes, 1, 1}});
    }
  }

  void run(const kernel::Run& r) override {
    char* whole = static_cast<char*>(r.raw(whole_));
    if (row_bytes_ >= kLongRow || rows_ == 1 || pieces_.size() == 1) {
      for (const Piece& piece : pieces_) {
        char* other = static_cast<char*>(r.raw(piece.slot));
        if (direction_ == Direction::kJoin)
          piece.copy.run(other, whole + piece.offset);
        else
          piece.copy.run(whole + piece.offset, other);
      }
      return;
    }
    parallel_for(rows_, std::max<int64_t>(1, kLongRow / std::max<int64_t>(1, row_bytes_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row)
                     for (const Piece& piece : pieces_)
                       copy_row(piece, r, whole + row * row_bytes_, row);
                 });
  }

 private:
  struct Piece {
    kernel::Slot slot;
    int64_t offset, bytes;  // within a row of the whole
    StridedCopy copy;
  };

  void copy_row(const Piece& piece, const kernel::Run& r, char* whole, int64_t row) const {
    char* other = static_cast<char*>(r.raw(piece.slot)) + row * piece.bytes;
    if (direction_ == Direction::kJoin)
      std::memcpy(whole + piece.offset, other, static_cast<size_t>(piece.bytes));
    else
      std::memcpy(other, whole + piece.offset, static_cast<size_t>(piece.bytes));
  }

  Direction direction_;
  kernel::Slot whole_;
  std::vector<Piece> pieces_;
  int64_t rows_ = 0, row_bytes_ = 0;
};

}  // namespace

std::unique_ptr<kernel::Kernel> make_join(kernel::Prepare& p, std::string_view pieces, int axis,
                                          std::string_view whole) {
  return std::make_unique<PiecesKernel>(p, whole, pieces, axis, Direction::kJoin);
}

std::unique_ptr<kernel::Kernel> make_cut(kernel::Prepare& p, std::string_view whole, int axis,
                                         std::string_view pieces) {
  return std::make_unique<PiecesKernel>(p, whole, pieces, axis, Direction::kCut);
}

ir::Names gradient_names(ir::Grad& g, std::string_view slot) {
  ir::Names names;
  for (size_t i = 0; i < g.count(slot); ++i) {
    std::string name = g.dx(slot, i);
    if (std::find(names.begin(), names.end(), name) != names.end())
      name = g.builder().unique_name(name);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace fleetx::ops
