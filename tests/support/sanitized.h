// Whether this test runs under a sanitizer, where times mean nothing and fork is not safe.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FLEETX_TEST_IS_SANITIZED 1
#endif
#endif

namespace fleetx::testing {

#ifdef FLEETX_TEST_IS_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace fleetx::testing
