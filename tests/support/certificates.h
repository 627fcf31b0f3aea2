// Certificates of two authorities, "a" and "b", that know nothing of each other, by the command
// openssl; and the variables that switch TLS on.
#pragma once

#include <cstdlib>

#include "fleetx/base/error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {

class Certificates {
 public:
  Certificates() {
    for (const std::string who : {"a", "b"})
      made_ = std::system(str("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 ",
                              "-nodes -days 2 -subj /CN=", who, " -keyout ", file(who + ".key"),
                              " -out ", file(who + ".pem"), " >/dev/null 2>&1")
                              .c_str()) == 0 &&
              made_;
  }
  ~Certificates() { use(""); }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  bool made() const { return made_; }  // false: the command is not installed
  std::string file(const std::string& name) const { return folder_ / name; }
  // From now on this process has those of `who`; "": none.
  void use(const std::string& who) const {
    for (const auto& [variable, ending] : {std::pair("FLEETX_TLS_CERT", ".pem"),
                                           {"FLEETX_TLS_KEY", ".key"},
                                           {"FLEETX_TLS_CA", ".pem"}})
      who.empty() ? unsetenv(variable) : setenv(variable, file(who + ending).c_str(), 1);
  }

 private:
  TempDir folder_;
  bool made_ = true;
};

}  // namespace fleetx::testing
