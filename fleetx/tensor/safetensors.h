// Tensors in files, in the safetensors format: 8 bytes little-endian length of the header, a JSON
// header {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, "__metadata__":
// {...}}, then the row-major elements. The same tensors give the same bytes: names are sorted, wide
// types come first so that every tensor is aligned, the header is padded to 8 bytes with spaces.
//
// Files are untrusted: a damaged file is kCorrupt with file, tensor and reason, and no more memory
// is allocated than the file has data.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "fleetx/tensor/tensor.h"

namespace fleetx {

struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Tensors in any layout are stored row-major. The file is on disk (fsync) when this returns.
void save_safetensors(const std::string& path, const Safetensors& content);
Safetensors load_safetensors(const std::string& path);

std::string to_safetensors(const Safetensors& content);
// `source` names the bytes in errors. The tensors are copies.
Safetensors parse_safetensors(std::span<const std::byte> bytes, std::string_view source);

}  // namespace fleetx
