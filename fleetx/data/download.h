// Public data sets as they lie on a server:
//
//   set.yaml        bos_path: http://server/folder     (or a folder beside the yaml)
//   filelist.txt    lines `part-0.tar md5`: the archives with the pictures
//   meta.txt        lines `train.txt`: what every machine needs; without it train.txt and val.txt
//
// The workers of a machine may all ask at once: one downloads, the others wait and find it done.
// What is there and has the right sum is not fetched again; what was interrupted is resumed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleetx/data/http.h"

namespace fleetx::data {

struct DownloadOptions {
  std::string yaml = {};  // address or file
  std::string folder = {};
  // Of the lines of filelist.txt only numbers shard_id, shard_id + shard_num, ...; -1: all.
  int shard_num = -1;
  int shard_id = -1;
  int threads = 10;  // that fetch and unpack
  HttpOptions http = {};
  // Called in the calling thread every now and then; may throw to give up.
  std::function<void()> poll = {};
};

struct Downloaded {
  int fetched = 0;  // files and archives
  int kept = 0;     // that were there already
  uint64_t unpacked = 0;
};

Downloaded download(const DownloadOptions& options);
// Whether what was downloaded last into this folder was a share, with lists of everything.
bool has_part_only(const std::string& folder);

// One line of a list.
struct Listed {
  std::string name;
  std::string sum;  // empty: the list gives none
};
// `source` names the list in errors.
std::vector<Listed> parse_file_list(const std::string& text, const std::string& source);
// Where the files lie, of a yaml that came from `source`.
std::string parse_location(const std::string& yaml, const std::string& source);

}  // namespace fleetx::data
