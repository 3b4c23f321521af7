/* machine.h: the functions of a PC that the example needs.  SPDX-License-Identifier: ISC */
#ifndef EXAMPLES_BARE_MACHINE_H
#define EXAMPLES_BARE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TIMER_HZ = 1000 };

/* Initialises everything; interrupts stay off.  Once they are on, the handler calls on_tick() TIMER_HZ times a second. */
void machine_start(void (*on_tick)(void));

/* Print on the serial port. */
void machine_print(const char *text);
void machine_print_number(const char *name, uint64_t number);

/* Returns whether the command line contains the word; `loader` is the multiboot information. */
bool machine_has_option(const void *loader, const char *word);

/* Functions for the recorder: the CPU's counter, its frequency, the time of day, and disabling interrupts. */
uint64_t machine_clock(void);
uint64_t machine_clock_hz(void);
uint64_t machine_wall_ns(void);
uint64_t machine_disable_interrupts(void);
void machine_restore_interrupts(uint64_t state);

/* Sleeps until an interrupt has been handled; interrupts are disabled at the call and at the return. */
void machine_sleep(void);

/* A ring of one MiB: contiguous in the program's addresses, scattered in the machine's memory. */
enum { MACHINE_RING_BYTES = 1 << 20 };
void *machine_ring(void);

/* Allocate and free memory, for weft_promise_set_memory(). */
void *machine_allocate(void *ctx, size_t bytes);
void machine_release(void *ctx, void *memory, size_t bytes);

/* Writes to unmapped memory, which kills the machine. */
void machine_crash(void);

#endif
