#include "neyman/core/version.hpp"

namespace neyman {

const char* version() { return NEYMAN_VERSION; }

const char* built_with() { return NEYMAN_BUILT_WITH; }

}  // namespace neyman
