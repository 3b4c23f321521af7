/* python_frames.h: where CPython keeps the frames of running functions, for code that reads frames without calls of Python.
 *
 * CPython's layouts are private and differ by version, so code checks what it reads by them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PYTHON_FRAMES_H
#define WEFT_PYTHON_FRAMES_H

#include <stddef.h>

/* Offsets in bytes. */
struct weft_python_frames {
	int minor; /* of Python 3 */
	/* Offsets in PyThreadState: the thread's id, the object that has the innermost frame (0: PyThreadState itself), and the
	 * frame in that object. */
	unsigned tid, holder, frame;
	unsigned code, before, instruction;    /* of _PyInterpreterFrame */
	unsigned owner;                        /* offset in the frame of the byte that names the frame's owner */
	unsigned first_line, code_begin, text; /* offsets in PyCodeObject, and offset of the bytes in a string */
};

enum { WEFT_PYTHON_FRAME_OF_C = 3 }; /* owner of frames that have no code */

/* Returns the layout of Python 3.MINOR; NULL if it is unknown. */
static inline const struct weft_python_frames *weft_python_frames_find(int minor)
{
	static const struct weft_python_frames layouts[] = {
	    {11, 160, 56, 8, 32, 48, 56, 69, 72, 184, 48},
	    {12, 144, 56, 0, 0, 8, 56, 70, 68, 192, 40},
	    {13, 160, 0, 72, 0, 8, 56, 70, 68, 200, 40},
	};
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

#endif
