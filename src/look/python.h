/* python.h: the Python code that OS threads run (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_PYTHON_H
#define WEFT_LOOK_PYTHON_H

#include "look/target.h"

/* Finds the Python stack of each thread, for CPython 3.11 to 3.13.  False: no memory. */
bool weft__look_find_python(struct look_target *target);

#endif
