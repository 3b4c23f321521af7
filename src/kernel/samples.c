/* samples.c: implements samples.h.
 *
 * The event is the kernel's software clock, which virtual machines have too.  SPDX-License-Identifier: ISC */
#include "kernel/samples.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/vec.h"
#include "kernel/ring.h"

/* Numbers of registers in PERF_SAMPLE_REGS_USER on x86-64, and their order here.  A sample has the registers by number. */
enum { PERF_AX, PERF_BX, PERF_CX, PERF_DX, PERF_SI, PERF_DI, PERF_BP, PERF_SP, PERF_IP, PERF_R8 = 16, PERF_R15 = 23 };
#define SAMPLED_REGISTERS (0x1ffull | 0xffull << PERF_R8)

enum { RING_BYTES = 4 << 20, CODE_OF_64_BITS = 2 };

struct cpu {
	int fd;
	struct weft_kernel_ring ring;
};

struct weft_kernel_samples {
	enum weft_profile_way way;
	WEFT_VEC(struct cpu) cpus;
	unsigned char *record_buffer;
	/* During a drain. */
	weft_kernel_samples_fn *emit;
	void *emit_ctx;
	uint64_t lost;
};

static void close_cpus(struct weft_kernel_samples *s)
{
	while (s->cpus.items && s->cpus.count) {
		struct cpu *cpu = &s->cpus.items[--s->cpus.count];
		weft_kernel_ring_unmap(&cpu->ring);
		close(cpu->fd);
	}
}

/* Opens the event on each CPU; `pid` is -1 for all processes.  Returns 0, or an error number. */
static int open_cpus(struct weft_kernel_samples *s, pid_t pid, uint32_t rate_hz, bool has_kernel)
{
	struct perf_event_attr attr = {.size = sizeof attr,
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_CPU_CLOCK,
	    .freq = 1,
	    .sample_freq = rate_hz,
	    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
	    .sample_regs_user = SAMPLED_REGISTERS,
	    .sample_stack_user = WEFT_KERNEL_STACK_BYTES,
	    .exclude_kernel = !has_kernel,
	    .exclude_hv = 1,
	    .exclude_idle = 1,
	    .use_clockid = 1,
	    .clockid = CLOCK_MONOTONIC_RAW,
	    .mmap = 1,
	    .inherit = pid >= 0,
	    .disabled = pid >= 0,
	    .enable_on_exec = pid >= 0};
	const int count = (int)sysconf(_SC_NPROCESSORS_CONF);
	int error = ENODEV;
	for (int i = 0; i < count; i++) {
		const int fd = (int)syscall(SYS_perf_event_open, &attr, pid, i, -1, PERF_FLAG_FD_CLOEXEC);
		struct cpu *cpu = fd < 0 ? NULL : weft_vec_push(&s->cpus);
		if (fd < 0 && errno == ENODEV)
			continue; /* the CPU is offline */
		error = fd < 0 ? errno : 0;
		if (cpu && !weft_kernel_ring_map(&cpu->ring, fd, RING_BYTES, false)) {
			s->cpus.count--;
			cpu = NULL;
		}
		if (!cpu) {
			if (fd >= 0)
				close(fd);
			close_cpus(s);
			return error ? error : ENOMEM;
		}
		cpu->fd = fd;
	}
	return error;
}

struct weft_kernel_samples *weft_kernel_samples_open(pid_t pid, uint32_t rate_hz, char *why, size_t why_size)
{
	struct weft_kernel_samples *s = calloc(1, sizeof *s);
	*why = 0;
	if (!s || !(s->record_buffer = malloc(WEFT_KERNEL_RECORD_BYTES))) {
		free(s);
		snprintf(why, why_size, "out of memory");
		return NULL;
	}
	s->way = WEFT_PROFILE_WAY_ALL;
	int error = open_cpus(s, -1, rate_hz, true);
	if (error)
		error = open_cpus(s, pid, rate_hz, true);
	if (error) {
		weft_kernel_format_refusal(why, why_size, error);
		s->way = WEFT_PROFILE_WAY_USER;
		error = open_cpus(s, pid, rate_hz, false);
	}
	if (!error)
		return s;
	weft_kernel_format_refusal(why, why_size, error);
	weft_kernel_samples_close(s);
	return NULL;
}

enum weft_profile_way weft_kernel_samples_way(const struct weft_kernel_samples *s)
{
	return s->way;
}

/* Emits a sample: pid, tid, time, registers and stack. */
static void read_sample(struct weft_kernel_samples *s, struct weft_cursor in)
{
	static const uint8_t order[WEFT_KERNEL_REGISTERS - 1] = {
	    PERF_AX, PERF_DX, PERF_CX, PERF_BX, PERF_SI, PERF_DI, PERF_BP, PERF_SP, 9, 10, 11, 12, 13, 14, 15, 16};
	struct weft_kernel_sample sample = {0};
	uint64_t code, registers[WEFT_KERNEL_REGISTERS], size, copied;
	if (!weft_read_u32(&in, &sample.pid) || !weft_read_u32(&in, &sample.tid) || !weft_read_u64(&in, &sample.time_ns) ||
	    !weft_read_u64(&in, &code) || code != CODE_OF_64_BITS)
		return;
	for (int i = 0; i < WEFT_KERNEL_REGISTERS; i++)
		if (!weft_read_u64(&in, &registers[i]))
			return;
	/* The sampled registers have consecutive places in the sample: 0 to 8, and r8 behind them. */
	for (int i = 0; i < WEFT_KERNEL_REGISTERS - 1; i++)
		sample.registers[i] = registers[order[i]];
	sample.registers[WEFT_KERNEL_REGISTERS - 1] = registers[PERF_IP];
	if (!weft_read_u64(&in, &size) || (uint64_t)(in.end - in.at) < size)
		return;
	sample.bytes = in.at;
	in.at += size;
	sample.size = size && weft_read_u64(&in, &copied) && copied <= size ? (size_t)copied : 0;
	s->emit(s->emit_ctx, &sample);
}

static void read_record(void *ctx, const unsigned char *record)
{
	struct weft_kernel_samples *s = ctx;
	struct perf_event_header h;
	uint64_t id, lost;
	struct weft_kernel_sample mapping = {.is_mapping = true};
	memcpy(&h, record, sizeof h);
	struct weft_cursor in = {record + sizeof h, record + h.size};
	if (h.type == PERF_RECORD_SAMPLE)
		read_sample(s, in);
	else if (h.type == PERF_RECORD_LOST && weft_read_u64(&in, &id) && weft_read_u64(&in, &lost))
		s->lost += lost;
	else if (h.type == PERF_RECORD_MMAP && weft_read_u32(&in, &mapping.pid) && weft_read_u32(&in, &mapping.tid))
		s->emit(s->emit_ctx, &mapping);
}

uint64_t weft_kernel_samples_drain(struct weft_kernel_samples *s, weft_kernel_samples_fn *emit, void *ctx)
{
	s->emit = emit;
	s->emit_ctx = ctx;
	s->lost = 0;
	for (size_t i = 0; i < s->cpus.count; i++)
		(void)weft_kernel_ring_drain(&s->cpus.items[i].ring, s->record_buffer, read_record, s);
	return s->lost;
}

void weft_kernel_samples_close(struct weft_kernel_samples *s)
{
	if (!s)
		return;
	close_cpus(s);
	weft_vec_free(&s->cpus);
	free(s->record_buffer);
	free(s);
}
