/* module.cc: a module in C++.  SPDX-License-Identifier: ISC */
#include "places.h"

namespace garden
{
namespace
{
struct Hidden {
	template <typename T> __attribute__((noinline)) int grow(void (*create)(const char *), T height)
	{
		create("grow");
		__asm__ volatile("");
		return static_cast<int>(height);
	}
};
} // namespace

class Tree
{
      public:
	__attribute__((noinline)) int plant(void (*create)(const char *), int depth) const
	{
		create("plant");
		__asm__ volatile("");
		return depth + Hidden().grow(create, 2.0);
	}
};
} // namespace garden

extern "C" __attribute__((visibility("default"))) int places_work_here(void (*create)(const char *label))
{
	return garden::Tree().plant(create, 3);
}
