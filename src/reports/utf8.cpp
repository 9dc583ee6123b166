#include "reports/utf8.hpp"

namespace neyman::reports {

bool takes_no_column(char32_t code) {
  return (code >= 0x300 && code <= 0x36f) || (code >= 0x20d0 && code <= 0x20ff) ||
         (code >= 0x200b && code <= 0x200f) || code == 0xfeff;
}

}  // namespace neyman::reports
