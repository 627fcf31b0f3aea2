// A stretch of a process's run that is watched: between start() and stop() every executor adds the
// time of its ops to one profile and one trace. (FLEETX_PROFILE and FLEETX_TRACE watch the whole
// run.) Thread-safe.
#pragma once

#include <string>

#include "fleetx/runtime/profile.h"

namespace fleetx::runtime::profile_session {

bool active();
void start();  // forgets what an earlier session has collected
void reset();  // begins anew, where one is active
void add(const Step& step, double seconds);
void add(const Profile::CallRow& call);
// Ends the session and writes its trace, unless `trace_file` is empty. Gives the profile.
Profile stop(const std::string& trace_file);

}  // namespace fleetx::runtime::profile_session
