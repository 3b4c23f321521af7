/* stacks.c: unwinds stacks with libdwfl in a child process without rights (see stacks.h).
 *
 * The kernel shows only the stack pointer and the program counter of a running process.  These two registers suffice if a
 * frame's extent depends on the stack pointer, as in the C library.  If the extent depends on a frame pointer that no called
 * function has saved, the frame pointer is searched for on the stack.  SPDX-License-Identifier: ISC */
#include "stacks.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/cursor.h"
#include "base/sort.h"
#include "base/vec.h"
#include "file.h"
#include "names_private.h"
#include "rules.h"
#include "symbols.h"

enum { RBP = 6, RSP = 7, RIP = 16, MAX_TEXT = 4096, PATIENCE_MS = 8000, PROCESS = 1 };

static const size_t parser_bytes = (size_t)4 << 30;

/* An open module. */
struct file {
	int fd, debug_fd; /* -1: none */
	Dwfl_Module *module;
	struct weft_symbols symbols; /* in the child */
};

struct unwinder {
	struct weft_look_request *request;
	struct file *files; /* by module */
	struct weft_unwind_rules rules;
	struct weft_look_stack *current;
	int tid; /* number of the current stack for libdwfl */
	FILE *answers;
};

/* An answer of the child process: a frame of a stack, or the symbol of a datum.  The text follows. */
struct answer {
	uint64_t address;
	uint32_t index, text_bytes;
	bool is_datum;
};

/* ---- Code of the child process ---- */

static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file, const char *link,
    GElf_Word crc, char **out)
{
	const struct file *f = *data;
	const int fd = f && f->debug_fd >= 0 ? fcntl(f->debug_fd, F_DUPFD, 0) : -1;
	if (fd >= 0)
		*out = strdup("debug information");
	return fd;
}

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf, .find_debuginfo = find_debuginfo};

static pid_t next_thread(Dwfl *dwfl, void *ctx, void **thread)
{
	struct unwinder *u = ctx;
	if (*thread)
		return 0;
	*thread = u;
	return u->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *ctx, void **thread)
{
	*thread = ctx;
	return tid == ((struct unwinder *)ctx)->tid;
}

static bool read_stack(const struct weft_look_stack *s, uint64_t address, uint64_t *out)
{
	if (address < s->address || address - s->address > s->size || s->size - (address - s->address) < sizeof *out)
		return false;
	*out = weft_load_u64(s->bytes + (address - s->address));
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *ctx)
{
	uint64_t word;
	const bool is_there = read_stack(((struct unwinder *)ctx)->current, address, &word);
	if (is_there)
		*out = word;
	return is_there;
}

static bool set_registers(Dwfl_Thread *thread, void *ctx)
{
	const struct weft_look_stack *s = ((struct unwinder *)ctx)->current;
	Dwarf_Word all[WEFT_LOOK_REGISTERS];
	for (int i = 0; i < WEFT_LOOK_REGISTERS; i++)
		all[i] = s->registers[i];
	if (s->has_registers)
		return dwfl_thread_state_registers(thread, 0, WEFT_LOOK_REGISTERS, all);
	if (all[RBP] && !dwfl_thread_state_registers(thread, RBP, 1, &all[RBP]))
		return false;
	return dwfl_thread_state_registers(thread, RSP, 1, &all[RSP]) && dwfl_thread_state_registers(thread, RIP, 1, &all[RIP]);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread, .get_thread = get_thread, .memory_read = read_memory, .set_initial_registers = set_registers};

static int add_frame(Dwfl_Frame *frame, void *ctx)
{
	struct weft_look_stack *s = ((struct unwinder *)ctx)->current;
	Dwarf_Addr pc;
	bool is_activation;
	if (s->frame_count == WEFT_LOOK_FRAMES || !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	s->frames[s->frame_count++] = (struct weft_look_frame){.address = pc};
	return DWARF_CB_OK;
}

/* Returns the symbol that contains an address, or NULL. */
static const struct weft_symbol *symbol_at(Dwfl *dwfl, uint64_t address)
{
	void **data;
	Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
	if (!module || !dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL) || !*data)
		return NULL;
	struct file *f = *data;
	return weft__symbols_find(&f->symbols, module, address);
}

static void put_answer(struct unwinder *u, struct answer a, const struct weft_symbol *symbol)
{
	char *name = symbol ? weft__name_demangle(symbol->name) : NULL;
	const size_t bytes = name ? strcspn(name, "@") : 0;
	a.text_bytes = bytes < MAX_TEXT ? (uint32_t)bytes : MAX_TEXT;
	fwrite(&a, sizeof a, 1, u->answers);
	if (a.text_bytes)
		fwrite(name, 1, a.text_bytes, u->answers);
	free(name);
}

/* Returns whether a word may be a return address, because it is in the code of a file. */
static bool is_code(Dwfl *dwfl, uint64_t address)
{
	const struct weft_symbol *symbol = symbol_at(dwfl, address - 1);
	return symbol && symbol->type == STT_FUNC && address - 1 > symbol->begin;
}

/* Searches the stack for the frame pointer that a stopped unwinding needs, and continues with it: a word that points further up
 * the stack, with a return address behind it.  Returns false if the stack contains no such word. */
static bool guess_frame_pointer(Dwfl *dwfl, struct weft_look_stack *s)
{
	enum { MAX_SEARCHED = 4096 };
	uint64_t saved, back;
	for (uint64_t at = s->registers[RSP] & ~UINT64_C(7), end = at + MAX_SEARCHED; at < end; at += 8) {
		if (!read_stack(s, at, &saved) || !read_stack(s, at + 8, &back))
			return false;
		const bool leads_up = saved > at && saved - s->address < s->size && saved % 8 == 0;
		if ((leads_up || saved <= 1) && is_code(dwfl, back)) {
			s->registers[RBP] = at;
			return true;
		}
	}
	return false;
}

static void unwind(struct unwinder *u, Dwfl *dwfl, size_t index)
{
	struct weft_look_stack *s = u->current = &u->request->stacks[index];
	u->tid = PROCESS;
	if (!s->has_registers || !weft__rules_unwind(&u->rules, dwfl, s)) {
		s->frame_count = 0;
		(void)dwfl_getthread_frames(dwfl, u->tid, add_frame, u);
	}
	if (!s->has_registers && !s->registers[RBP] && s->frame_count && guess_frame_pointer(dwfl, s)) {
		const size_t before = s->frame_count;
		struct weft_look_stack first = *s;
		s->frame_count = 0;
		(void)dwfl_getthread_frames(dwfl, u->tid, add_frame, u);
		if (s->frame_count < before)
			*s = first;
	}
	if (!s->frame_count && s->registers[RIP])
		s->frames[s->frame_count++] = (struct weft_look_frame){.address = s->registers[RIP]};
	for (size_t i = 0; i < s->frame_count; i++)
		put_answer(u, (struct answer){.address = s->frames[i].address, .index = (uint32_t)index},
		    u->request->has_no_names ? NULL : symbol_at(dwfl, s->frames[i].address - 1));
}

static void report_modules(struct unwinder *u, Dwfl *dwfl)
{
	for (size_t i = 0; i < u->request->module_count; i++) {
		struct file *f = &u->files[i];
		const struct weft_look_module *m = &u->request->modules[i];
		const struct weft_str id = {m->build_id, (uint32_t)strlen(m->build_id)};
		void **data;
		if (f->fd < 0 || weft__file_identify(f->fd, id) != WEFT_FILE_FINE)
			continue;
		if (f->debug_fd >= 0 && weft__file_identify(f->debug_fd, id) != WEFT_FILE_FINE)
			f->debug_fd = -1;
		f->module = dwfl_report_elf(dwfl, m->path, m->path, f->fd, m->bias, true);
		if (f->module && dwfl_module_info(f->module, &data, NULL, NULL, NULL, NULL, NULL, NULL))
			*data = f;
	}
	dwfl_report_end(dwfl, NULL, NULL);
}

static void answer_all(struct unwinder *u, int *kept, size_t count)
{
	const struct weft_look_request *r = u->request;
	weft_sort(kept, count, sizeof *kept, weft__compare_descriptors);
	weft_confine_descriptors(kept, count);
	(void)weft_confine(parser_bytes, false);
	Dwfl *dwfl = dwfl_begin(&callbacks);
	if (!dwfl)
		_exit(1);
	report_modules(u, dwfl);
	for (size_t i = 0; i < r->datum_count; i++) {
		const struct weft_symbol *symbol = r->data[i].address ? symbol_at(dwfl, r->data[i].address) : NULL;
		if (symbol)
			put_answer(u, (struct answer){.index = (uint32_t)i, .is_datum = true}, symbol);
	}
	const bool can_unwind = dwfl_attach_state(dwfl, NULL, PROCESS, &thread_callbacks, u);
	for (size_t i = 0; i < r->stack_count && can_unwind; i++)
		unwind(u, dwfl, i);
	fflush(u->answers);
	_exit(0);
}

/* ---- Code of the parent process ---- */

static bool read_all(int fd, void *to, size_t size, const struct timespec *end)
{
	for (size_t at = 0; at < size;) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		const int64_t left_ms = (int64_t)(end->tv_sec - now.tv_sec) * 1000 + (end->tv_nsec - now.tv_nsec) / 1000000;
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (left_ms <= 0 || (poll(&ready, 1, (int)left_ms) <= 0 && errno != EINTR))
			return false;
		const ssize_t n = ready.revents ? read(fd, (char *)to + at, size - at) : -1;
		if (n == 0 || (n < 0 && ready.revents && errno != EINTR))
			return false;
		at += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Takes over one answer of the child process, after checks of the answer's fields. */
static bool take_answer(struct weft_look_request *r, int fd, const struct timespec *end)
{
	struct answer a;
	if (!read_all(fd, &a, sizeof a, end) || a.text_bytes > MAX_TEXT ||
	    a.index >= (a.is_datum ? r->datum_count : r->stack_count))
		return false;
	char *text = a.text_bytes ? calloc(1, (size_t)a.text_bytes + 1) : NULL;
	if (a.text_bytes && (!text || !read_all(fd, text, a.text_bytes, end))) {
		free(text);
		return false;
	}
	struct weft_look_stack *s = a.is_datum ? NULL : &r->stacks[a.index];
	if (s && s->frame_count < WEFT_LOOK_FRAMES)
		s->frames[s->frame_count++] = (struct weft_look_frame){a.address, text};
	else if (!s && !r->data[a.index].symbol)
		r->data[a.index].symbol = text;
	else
		free(text);
	return true;
}

static int start_child(struct unwinder *u, pid_t *child)
{
	int ends[2];
	const size_t modules = u->request->module_count;
	int *kept = calloc(2 * modules + 1, sizeof *kept);
	size_t count = 0;
	if (!kept || pipe2(ends, O_CLOEXEC)) {
		free(kept);
		return -1;
	}
	kept[count++] = ends[1];
	for (size_t i = 0; i < modules; i++) {
		if (u->files[i].fd >= 0)
			kept[count++] = u->files[i].fd;
		if (u->files[i].debug_fd >= 0)
			kept[count++] = u->files[i].debug_fd;
	}
	*child = fork();
	if (*child == 0) {
		u->answers = fdopen(ends[1], "w");
		if (!u->answers)
			_exit(1);
		answer_all(u, kept, count);
	}
	free(kept);
	close(ends[1]);
	if (*child > 0)
		return ends[0];
	close(ends[0]);
	return -1;
}

/* Opens the file of a module, and the module's installed debug information. */
static void open_file(struct file *f, const struct weft_look_module *m)
{
	char debug[256];
	*f = (struct file){.fd = -1, .debug_fd = -1};
	if (!weft__file_debug_path(debug, sizeof debug, (struct weft_str){m->build_id, (uint32_t)strlen(m->build_id)}))
		return;
	f->fd = weft__file_open(m->path);
	f->debug_fd = f->fd >= 0 ? weft__file_open(debug) : -1;
}

void weft_stacks_find(struct weft_look_request *request)
{
#ifdef __x86_64__
	struct unwinder u = {.request = request, .files = calloc(request->module_count + 1, sizeof *u.files)};
	struct timespec end;
	pid_t child = -1;
	if (!u.files)
		return;
	for (size_t i = 0; i < request->module_count; i++)
		open_file(&u.files[i], &request->modules[i]);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += PATIENCE_MS / 1000;
	const int answers = start_child(&u, &child);
	while (answers >= 0 && take_answer(request, answers, &end))
		;
	if (answers >= 0)
		close(answers);
	if (child > 0) {
		kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	for (size_t i = 0; i < request->module_count; i++) {
		if (u.files[i].fd >= 0)
			close(u.files[i].fd);
		if (u.files[i].debug_fd >= 0)
			close(u.files[i].debug_fd);
	}
	free(u.files);
#else
	(void)request;
#endif
}
