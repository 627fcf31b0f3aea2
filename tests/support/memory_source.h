// Bytes that are not in a file, in small pieces.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "fleetx/data/byte_source.h"

namespace fleetx::testing {

class MemorySource final : public data::ByteSource {
 public:
  explicit MemorySource(std::string_view bytes, size_t at_once = 100)
      : bytes_(bytes), at_once_(at_once) {}
  size_t read(char* to, size_t most) override {
    const size_t n = std::min({most, bytes_.size() - at_, at_once_});
    std::memcpy(to, bytes_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  std::string bytes_;
  size_t at_once_, at_ = 0;
};

}  // namespace fleetx::testing
