#include "fleetx/data/idx.h"

#include <zlib.h>

#include <cstring>

#include "fleetx/base/file.h"

namespace fleetx::data {
namespace {

constexpr uint64_t kLimit = uint64_t{4} << 30;

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

std::string gunzip(std::string_view packed, std::string_view source) {
  struct Stream : z_stream {
    Stream() : z_stream{} {}
    ~Stream() { inflateEnd(this); }
  } stream;
  FLEETX_CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::string block(1 << 20, '\0');
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    check_file(status == Z_OK || status == Z_STREAM_END, source, ": the compressed data are ",
               status == Z_BUF_ERROR ? "cut short" : "damaged", " at byte ", stream.total_in);
    out.append(block.data(), block.size() - stream.avail_out);
    check_file(out.size() <= kLimit, source, ": unpacks to more than ", kLimit, " bytes");
  }
  return out;
}

}  // namespace

Tensor parse_idx(std::string_view bytes, std::string_view source) {
  check_file(bytes.size() >= 4, source, ": ", bytes.size(), " bytes are too few for an IDX file");
  check_file(bytes[0] == 0 && bytes[1] == 0, source, ": not an IDX file");
  check_file(bytes[2] == 8, source, ": element type ", static_cast<int>(bytes[2]),
             " is not supported; expected 8 (unsigned bytes)");
  const auto rank = static_cast<size_t>(static_cast<uint8_t>(bytes[3]));
  const size_t start = 4 + 4 * rank;
  check_file(rank >= 1 && rank <= 8 && bytes.size() >= start, source, ": ", rank,
             " dimensions are not possible");
  Shape shape;
  uint64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    const uint32_t dim = big_endian(bytes, 4 + 4 * i);
    shape.push_back(dim);
    check_file(dim == 0 || count <= kLimit / dim, source, ": shape ", shape, " is too large");
    count *= dim;
  }
  check_file(count == bytes.size() - start, source, ": shape ", shape, " needs ", count,
             " bytes, the file has ", bytes.size() - start);
  Tensor t(DType::kU8, shape);
  std::memcpy(t.raw(), bytes.data() + start, t.bytes());
  return t;
}

Tensor load_idx(const std::string& path) {
  const std::string bytes = read_file(path);
  const bool packed = bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
  return parse_idx(packed ? gunzip(bytes, path) : bytes, path);
}

}  // namespace fleetx::data
