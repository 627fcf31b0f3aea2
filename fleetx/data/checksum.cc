#include "fleetx/data/checksum.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"

namespace fleetx::data {
namespace {

constexpr size_t kMd5Digits = 32, kSha256Digits = 64;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

bool is_checksum(const std::string& text) {
  return (text.size() == kMd5Digits || text.size() == kSha256Digits) &&
         std::all_of(text.begin(), text.end(), is_hex);
}

std::string checksum(const std::string& path, const std::string& like) {
  FLEETX_CHECK(is_checksum(like), like);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const EVP_MD* algorithm = like.size() == kMd5Digits ? EVP_md5() : EVP_sha256();
  FLEETX_CHECK(state && EVP_DigestInit_ex(state.get(), algorithm, nullptr) == 1, "OpenSSL refuses ",
               EVP_MD_get0_name(algorithm));
  const FileReader file(path);
  std::vector<char> block(size_t{1} << 20);
  for (uint64_t at = 0; at < file.size(); at += block.size()) {
    const size_t bytes = std::min<uint64_t>(block.size(), file.size() - at);
    file.read_at(at, block.data(), bytes);
    EVP_DigestUpdate(state.get(), block.data(), bytes);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(state.get(), digest, &length);
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

bool matches(const std::string& path, const std::string& sum) {
  return checksum(path, sum) == lower(sum);
}

}  // namespace fleetx::data
