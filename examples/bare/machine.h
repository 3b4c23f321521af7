/* machine.h: what the example needs of a PC.  SPDX-License-Identifier: ISC */
#ifndef EXAMPLES_BARE_MACHINE_H
#define EXAMPLES_BARE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIMER_HZ = 1000 };

/* Prepares it all; interrupts stay off.  on_tick() is called TIMER_HZ times a second once they are on, in the handler. */
void machine_start(void (*on_tick)(void));

/* The serial port. */
void machine_print(const char *text);
void machine_print_number(const char *name, uint64_t number);

/* Whether the loader was given this word, or what follows `word` as in multiboot's specification; false: neither. */
bool machine_was_told(const void *loader, const char *word);

/* For the recorder: the processor's counter, how fast it counts, the time of the day, and interrupts kept out. */
uint64_t machine_clock(void);
uint64_t machine_clock_hz(void);
uint64_t machine_wall_ns(void);
uint64_t machine_keep_out(void);
void machine_let_in(uint64_t state);

/* Sleeps until an interrupt has been handled; called with interrupts kept out, returns so. */
void machine_sleep(void);

/* A MiB for a ring: one piece for the program, pages here and there for who looks at the machine's memory. */
enum { MACHINE_RING_BYTES = 1 << 20 };
void *machine_ring(void);

/* For weft_promise_set_memory(). */
void *machine_allocate(void *ctx, size_t bytes);
void machine_release(void *ctx, void *memory, size_t bytes);

/* Writes where no memory is: nobody handles that, the machine dies. */
void machine_crash(void);

#endif
