#include "fleetx/tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fleetx/base/file.h"

namespace fleetx {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored as they are");

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the format's own library
constexpr size_t kMaxRank = 64;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array kTypes{
    TypeName{DType::kF32, "F32"}, TypeName{DType::kF64, "F64"},   TypeName{DType::kI32, "I32"},
    TypeName{DType::kI64, "I64"}, TypeName{DType::kF16, "F16"},   TypeName{DType::kBF16, "BF16"},
    TypeName{DType::kU8, "U8"},   TypeName{DType::kBool, "BOOL"},
};

std::string_view file_name_of(DType dtype) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](auto& t) { return t.dtype == dtype; })
      ->name;
}

struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t begin, end;
};

// The bytes of a tensor of these dimensions; nullopt if that, or a partial product, overflows.
std::optional<uint64_t> bytes_of(DType dtype, const std::vector<uint64_t>& dims) {
  constexpr uint64_t kLimit = uint64_t{1} << 60;
  uint64_t bytes = size_of(dtype);
  bool empty = false;
  for (const uint64_t dim : dims) {
    if (dim > kLimit / bytes) return std::nullopt;
    if (dim == 0)
      empty = true;
    else
      bytes *= dim;
  }
  return empty ? 0 : bytes;
}

// A streaming (SAX) parser of the header: unlike a tree of JSON values it sees duplicate names, and
// it stops at the first unexpected value.
class HeaderReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit HeaderReader(std::string_view source) : source_(source) {}

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool null() { bad("null"); }
  bool boolean(bool) { bad("true or false"); }
  bool number_integer(number_integer_t value) { bad(str("the number ", value)); }
  bool number_float(number_float_t, const string_t& text) { bad(str("the number ", text)); }
  bool binary(binary_t&) { bad("binary data"); }

  bool number_unsigned(number_unsigned_t value) {
    if (!in_list_) bad(str("the number ", value));
    check(list_.size() < kMaxRank, field_, " has more than ", kMaxRank, " numbers");
    list_.push_back(value);
    return true;
  }

  bool string(string_t& value) {
    if (depth_ == 2 && in_metadata_) {
      check(metadata.emplace(field_, value).second, "metadata '", field_, "' stands there twice");
      return true;
    }
    if (depth_ != 2 || field_ != "dtype") bad(str("the string \"", value.substr(0, 80), "\""));
    const auto type =
        std::find_if(kTypes.begin(), kTypes.end(), [&](auto& t) { return t.name == value; });
    check(type != kTypes.end(), "unknown dtype \"", value.substr(0, 80), "\"");
    check(!dtype_, "dtype stands there twice");
    dtype_ = type->dtype;
    return true;
  }

  bool start_object(size_t) {
    if (in_list_ || depth_ == 2) bad("an object");
    ++depth_;
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
    field_.clear();
    return true;
  }

  bool key(string_t& value) {
    if (depth_ == 2) {
      field_ = value;
      return true;
    }
    check_file(names_.insert(value).second, source_, ": tensor '", value, "' stands there twice");
    name_ = value;
    in_metadata_ = value == kMetadata;
    return true;
  }

  bool end_object() {
    if (depth_ == 2 && !in_metadata_) add_entry();
    --depth_;
    field_.clear();
    return true;
  }

  bool start_array(size_t) {
    if (depth_ != 2 || in_list_ || in_metadata_ || (field_ != "shape" && field_ != "data_offsets"))
      bad("a list");
    in_list_ = true;
    list_.clear();
    return true;
  }

  bool end_array() {
    in_list_ = false;
    auto& place = field_ == "shape" ? shape_ : offsets_;
    check(!place, field_, " stands there twice");
    place = list_;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    fail(Error::Kind::kCorrupt, str(source_, ": the header is not JSON at byte ", position));
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... parts) const {
    check_file(ok, source_, ": tensor '", name_, "': ", parts...);
  }
  void add_entry() {
    check(dtype_ && shape_ && offsets_, dtype_ ? "" : "no dtype ", shape_ ? "" : "no shape ",
          offsets_ ? "" : "no data_offsets ", "in the header");
    check(offsets_->size() == 2, "data_offsets has ", offsets_->size(), " numbers, not 2");
    const uint64_t begin = (*offsets_)[0], end = (*offsets_)[1];
    const auto bytes = bytes_of(*dtype_, *shape_);
    check(bytes.has_value(), "its shape is too large for any file");
    const Shape shape(std::vector<int64_t>(shape_->begin(), shape_->end()));
    check(begin <= end && *bytes == end - begin, "shape ", shape, " of ", *dtype_, " needs ",
          *bytes, " bytes, data_offsets are [", begin, ",", end, "]");
    entries.push_back({name_, *dtype_, shape, begin, end});
  }
  [[noreturn]] void bad(const std::string& what) const {
    fail(Error::Kind::kCorrupt,
         str(source_, ": ", depth_ == 0 ? "" : str("tensor '", name_, "': "),
             field_.empty() ? "" : field_ + ": ", what, " does not belong in the header here"));
  }

  std::string source_;
  std::set<std::string, std::less<>> names_;
  int depth_ = 0;
  bool in_list_ = false, in_metadata_ = false;
  std::string name_, field_;
  std::optional<DType> dtype_;
  std::optional<std::vector<uint64_t>> shape_, offsets_;
  std::vector<uint64_t> list_;
};

// Sorted by place in the file; their data fill [0, data_bytes) without gap or overlap.
HeaderReader read_header(std::string_view json, uint64_t data_bytes, std::string_view source) {
  HeaderReader header(source);
  check_file(json.starts_with('{'), source, ": the header does not begin with '{'");
  nlohmann::json::sax_parse(json.begin(), json.end(), &header);
  auto& entries = header.entries;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t expected = 0;
  for (const Entry& e : entries) {
    const std::string who =
        str(source, ": tensor '", e.name, "': data_offsets [", e.begin, ",", e.end, "] ");
    check_file(e.end <= data_bytes, who, "are not inside the ", data_bytes, " bytes of data");
    check_file(e.begin >= expected, who, "overlap another tensor, which ends at ", expected);
    check_file(e.begin == expected, who, "leave a gap after ", expected);
    expected = e.end;
  }
  check_file(expected == data_bytes, source, ": ", data_bytes - expected,
             " bytes at the end belong to no tensor");
  return header;
}

uint64_t header_length(const void* prefix, uint64_t total, std::string_view source) {
  uint64_t length = 0;
  std::memcpy(&length, prefix, sizeof length);
  check_file(length <= kMaxHeader, source, ": header length ", length, " is over the limit of ",
             kMaxHeader, "; not a safetensors file?");
  check_file(length <= total - 8, source, ": header length ", length,
             " is beyond the end of the file (", total, " bytes)");
  return length;
}

// `read(offset, to, bytes)` copies from the data part.
template <class Read>
Safetensors collect(HeaderReader header, std::string_view source, const Read& read) {
  Safetensors content;
  content.metadata = std::move(header.metadata);
  for (const Entry& e : header.entries) {
    Tensor t(e.dtype, e.shape);
    if (t.bytes() > 0) read(e.begin, t.raw(), t.bytes());
    if (e.dtype == DType::kBool) {
      // Any other byte would be undefined behaviour as a C++ bool.
      const auto* bytes = static_cast<const uint8_t*>(t.raw());
      check_file(std::all_of(bytes, bytes + t.bytes(), [](uint8_t b) { return b <= 1; }), source,
                 ": tensor '", e.name, "': a BOOL is neither 0 nor 1");
    }
    content.tensors.emplace(e.name, std::move(t));
  }
  return content;
}

struct Prepared {
  std::string header;  // with its length in front
  std::vector<Tensor> data;
};

Prepared prepare(const Safetensors& content) {
  std::vector<std::pair<std::string_view, const Tensor*>> order;
  for (const auto& [name, tensor] : content.tensors) {
    check_arg(name != kMetadata, "a tensor cannot be saved under the name ", kMetadata);
    check_arg(tensor.defined(), "tensor '", name, "' cannot be saved: it has no memory");
    order.emplace_back(name, &tensor);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return size_of(a.second->dtype()) > size_of(b.second->dtype());
  });
  nlohmann::json json = nlohmann::json::object();
  if (!content.metadata.empty()) json[std::string(kMetadata)] = content.metadata;
  Prepared out;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : order) {
    const Tensor plain = tensor->plain();
    json[std::string(name)] = {{"dtype", file_name_of(plain.dtype())},
                               {"shape", plain.shape().dims()},
                               {"data_offsets", {offset, offset + plain.bytes()}}};
    offset += plain.bytes();
    out.data.push_back(plain);
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::type_error&) {
    fail(Error::Kind::kInvalidArgument, "a tensor's name or metadata is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  check_arg(length <= kMaxHeader, "too many tensors for one safetensors file: header of ", length,
            " bytes, at most ", kMaxHeader);
  out.header.assign(reinterpret_cast<const char*>(&length), sizeof length);
  out.header += text;
  return out;
}

}  // namespace

void save_safetensors(const std::string& path, const Safetensors& content) {
  const Prepared p = prepare(content);
  FileWriter file(path);
  file.write(p.header);
  for (const Tensor& t : p.data) file.write(t.raw(), t.bytes());
  file.finish();
}

Safetensors load_safetensors(const std::string& path) {
  const FileReader file(path);
  check_file(file.size() >= 8, path, ": ", file.size(),
             " bytes are too few for a safetensors file");
  char prefix[8];
  file.read_at(0, prefix, sizeof prefix);
  const uint64_t length = header_length(prefix, file.size(), path);
  std::string json(length, '\0');
  file.read_at(8, json.data(), length);
  return collect(read_header(json, file.size() - 8 - length, path), path,
                 [&](uint64_t offset, void* to, size_t bytes) {
                   file.read_at(8 + length + offset, to, bytes);
                 });
}

std::string to_safetensors(const Safetensors& content) {
  Prepared p = prepare(content);
  for (const Tensor& t : p.data) p.header.append(static_cast<const char*>(t.raw()), t.bytes());
  return std::move(p.header);
}

Safetensors parse_safetensors(std::span<const std::byte> bytes, std::string_view source) {
  check_file(bytes.size() >= 8, source, ": ", bytes.size(),
             " bytes are too few for a safetensors file");
  const uint64_t length = header_length(bytes.data(), bytes.size(), source);
  const std::string_view json(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  const std::span data = bytes.subspan(8 + length);
  return collect(
      read_header(json, data.size(), source), source,
      [&](uint64_t offset, void* to, size_t n) { std::memcpy(to, data.data() + offset, n); });
}

}  // namespace fleetx
