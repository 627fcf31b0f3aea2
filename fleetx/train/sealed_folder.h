// Folders of files that belong together and are complete or not there at all. The files are written
// into a temporary sibling; the manifest with their sizes and SHA-256 comes last; then the folder
// is renamed into place. A power failure or a kill at any moment leaves what was there before.
//
//   FolderWriter out("run/step-100", "fleetx-checkpoint");
//   write_file(out.file("main.pb"), bytes);
//   out.fact("step", "100");
//   out.commit();
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fleetx::train {

inline constexpr std::string_view kManifest = "manifest.json";

class FolderWriter {
 public:
  // `format` says what kind of folder this is. Nothing is visible under `path` before commit().
  FolderWriter(std::string path, std::string format);
  ~FolderWriter();  // without commit() nothing stays
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  // Where to write a file of this name; write it completely before commit().
  std::string file(const std::string& name) const;
  // Small things that stand in the manifest itself.
  void fact(const std::string& key, std::string value) { facts_[key] = std::move(value); }
  // Takes the place of what is at `path`, if anything.
  void commit();

 private:
  std::string path_, temporary_, format_;
  std::map<std::string, std::string> facts_;
  bool committed_ = false;
};

// A folder that was verified when it was opened: a file that is missing, or differs from the
// manifest by one bit, is kCorrupt and named.
class SealedFolder {
 public:
  // An empty format accepts any.
  SealedFolder(std::string path, std::string_view format);

  const std::string& path() const { return path_; }
  const std::string& format() const { return format_; }
  bool has(const std::string& name) const { return sizes_.contains(name); }
  std::string file(const std::string& name) const;  // kCorrupt where the folder has no such file
  // kCorrupt where it is missing, or not a number.
  std::string fact(const std::string& key) const;
  int64_t number(const std::string& key) const;
  const std::map<std::string, std::string>& facts() const { return facts_; }
  const std::map<std::string, uint64_t>& files() const { return sizes_; }

 private:
  std::string path_, format_;
  std::map<std::string, std::string> facts_;
  std::map<std::string, uint64_t> sizes_;
};

}  // namespace fleetx::train
