#include <weft/status.h>
