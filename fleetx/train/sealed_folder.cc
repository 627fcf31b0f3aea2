#include "fleetx/train/sealed_folder.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"

namespace fleetx::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxManifest = 16 << 20;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    FLEETX_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(const void* data, size_t bytes) {
    FLEETX_CHECK(EVP_DigestUpdate(context_.get(), data, bytes) == 1);
  }
  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    FLEETX_CHECK(EVP_DigestFinal_ex(context_.get(), digest, &size) == 1);
    std::string out;
    for (unsigned i = 0; i < size; ++i)
      for (const int nibble : {digest[i] >> 4, digest[i] & 15}) out += "0123456789abcdef"[nibble];
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* c) const { EVP_MD_CTX_free(c); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

std::string sha256_of_text(std::string_view text) {
  Sha256 sha;
  sha.add(text.data(), text.size());
  return sha.hex();
}

std::string sha256_of_file(const FileReader& file) {
  Sha256 sha;
  std::vector<char> block(1 << 20);
  for (uint64_t at = 0; at < file.size(); at += block.size()) {
    const size_t bytes = std::min<uint64_t>(block.size(), file.size() - at);
    file.read_at(at, block.data(), bytes);
    sha.add(block.data(), bytes);
  }
  return sha.hex();
}

// A name inside the folder, not a way out of it.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name != kManifest;
}

void move_into_place(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return;
  const bool taken = errno == ENOTEMPTY || errno == EEXIST;
  // Swapping is atomic; where a file system cannot do it, the old folder makes way first.
  if (taken && renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(from);
    return;
  }
  const std::string old = from + ".old";
  const bool moved = taken && std::rename(to.c_str(), old.c_str()) == 0 &&
                     std::rename(from.c_str(), to.c_str()) == 0;
  if (!moved)
    fail(Error::Kind::kUnsupported,
         str("cannot rename ", from, " to ", to, ": ", std::generic_category().message(errno)));
  fs::remove_all(old);
}

}  // namespace

FolderWriter::FolderWriter(std::string path, std::string format)
    : path_(std::move(path)), format_(std::move(format)) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  check_arg(!path_.empty() && path_ != "/", "a folder needs a name, got '", path_, "'");
  const fs::path target(path_);
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  check_arg(!error, "cannot make the folder ", target.parent_path().string(), ": ",
            error.message());
  // One name for every attempt: what an interrupted one has left is replaced, not piled up.
  temporary_ = (target.parent_path() / (".tmp-" + target.filename().string())).string();
  fs::remove_all(temporary_, error);
  fs::create_directory(temporary_, error);
  check_arg(!error, "cannot make the folder ", temporary_, ": ", error.message());
}

FolderWriter::~FolderWriter() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

std::string FolderWriter::file(const std::string& name) const {
  FLEETX_CHECK(is_plain_name(name), "'", name, "'");
  return temporary_ + "/" + name;
}

void FolderWriter::commit() {
  json files = json::object();
  for (const auto& entry : fs::directory_iterator(temporary_)) {
    const FileReader file(entry.path().string());
    files[entry.path().filename().string()] = {{"bytes", file.size()},
                                               {"sha256", sha256_of_file(file)}};
  }
  json manifest = {{"format", format_}, {"version", 1}, {"facts", facts_}, {"files", files}};
  // Of the manifest without this line, in the same form.
  manifest["checksum"] = sha256_of_text(manifest.dump());
  write_file(temporary_ + "/" + std::string(kManifest), manifest.dump(2) + "\n");
  sync_folder(temporary_);
  move_into_place(temporary_, path_);
  committed_ = true;
  const std::string parent = fs::path(path_).parent_path().string();
  sync_folder(parent.empty() ? "." : parent);
}

SealedFolder::SealedFolder(std::string path, std::string_view format) : path_(std::move(path)) {
  const std::string where = path_ + "/" + std::string(kManifest);
  const std::string text = read_file(where, kMaxManifest);
  json manifest;
  try {
    manifest = json::parse(text);
    const std::string checksum = manifest.at("checksum");
    manifest.erase("checksum");
    check_file(checksum == sha256_of_text(manifest.dump()), where,
               ": its checksum does not fit: the manifest was changed or damaged");
    format_ = manifest.at("format").get<std::string>();
    check_file(format.empty() || format_ == format, where, ": this is a ", format_, ", expected a ",
               format);
    facts_ = manifest.at("facts").get<std::map<std::string, std::string>>();
    for (const auto& [name, entry] : manifest.at("files").items()) {
      check_file(is_plain_name(name), where, ": '", name, "' is not the name of a file here");
      const std::string file_path = path_ + "/" + name;
      check_file(fs::exists(file_path), file_path, ": the manifest names it, but it is missing");
      const FileReader file(file_path);
      const uint64_t bytes = entry.at("bytes");
      check_file(file.size() == bytes, file_path, ": has ", file.size(),
                 " bytes, the manifest says ", bytes);
      check_file(sha256_of_file(file) == entry.at("sha256").get<std::string>(), file_path,
                 ": damaged: its SHA-256 is not the one in the manifest");
      sizes_[name] = bytes;
    }
  } catch (const json::exception& e) {
    fail(Error::Kind::kCorrupt, str(where, ": not a manifest: ", e.what()));
  }
}

std::string SealedFolder::file(const std::string& name) const {
  check_file(has(name), path_, ": the folder has no ", name);
  return path_ + "/" + name;
}

std::string SealedFolder::fact(const std::string& key) const {
  const auto it = facts_.find(key);
  check_file(it != facts_.end(), path_, "/", kManifest, ": does not tell '", key, "'");
  return it->second;
}

int64_t SealedFolder::number(const std::string& key) const {
  const std::string text = fact(key);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check_file(error == std::errc{} && end == text.data() + text.size(), path_, "/", kManifest, ": '",
             key, "' is \"", text, "\", not a number");
  return value;
}

}  // namespace fleetx::train
