#include "neyman/core/version.hpp"

namespace neyman {

const char* version() { return NEYMAN_VERSION; }

}  // namespace neyman
