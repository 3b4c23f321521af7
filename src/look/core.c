/* core.c: makes a trace of a core dump, which the kernel or gcore wrote.
 *
 * Headers and notes of a dump are a stranger's bytes: every number is checked, and the memory that a dump may make this file
 * allocate is limited.  SPDX-License-Identifier: ISC */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/program_name.h"
#include "base/search.h"
#include "base/sort.h"
#include "look/loops.h"
#include "look/python.h"
#include "look/sources.h"
#include "look/v8.h"

enum {
	MAX_NOTES = 64 << 20, /* maximum size of notes in bytes; 8,192 threads with all vector registers need less */
	MAX_HEADERS = 1 << 20,
	NOTE_HEAD = 12,
	MOMENT_NS = 1000000000 /* time of the dump's moment in the trace, because a dump contains no monotonic clock */
};

/* A piece of memory that the dump contains. */
struct piece {
	uint64_t begin, bytes, offset;
};

struct core {
	int file;
	uint64_t size;
	WEFT_VEC(struct piece) pieces;
	unsigned char vector[1024]; /* auxiliary vector */
	size_t vector_bytes;
};

static size_t read_file(const struct core *core, uint64_t offset, void *to, size_t bytes)
{
	size_t got = 0;
	while (got < bytes && offset + got < core->size) {
		const ssize_t n = pread(core->file, (char *)to + got, bytes - got, (off_t)(offset + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

static size_t read_core(const struct look_target *t, uint64_t address, void *to, size_t bytes)
{
	const struct core *core = t->ctx;
	const struct piece *pieces = core->pieces.items;
	size_t got = 0;
	for (size_t i = WEFT_FIND_FIRST(k, 0, core->pieces.count, pieces[k].begin + pieces[k].bytes > address);
	     got < bytes && i < core->pieces.count && pieces[i].begin <= address + got; i++) {
		const uint64_t in_it = address + got - pieces[i].begin;
		if (in_it >= pieces[i].bytes)
			break;
		const uint64_t left = pieces[i].bytes - in_it;
		const size_t wanted = left < bytes - got ? (size_t)left : bytes - got;
		const size_t n = read_file(core, pieces[i].offset + in_it, (char *)to + got, wanted);
		got += n;
		if (n < wanted)
			break;
	}
	return got;
}

/* ---- Notes ---- */

#ifdef __x86_64__
/* Offsets in struct elf_prstatus, and numbers of its registers: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi
 * orig_rax rip cs flags rsp ss and five segments. */
enum { STATUS_PID = 32, STATUS_REGISTERS = 112, STATUS_BYTES = 336, STATUS_WORDS = 27 };
enum { MACHINE = EM_X86_64 };

static void fill_registers(struct look_thread *thread, const uint64_t r[STATUS_WORDS])
{
	enum { RAX = 10, ORIG_RAX = 15 };
	static const uint8_t dwarf[WEFT_LOOK_REGISTERS] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16},
			     args[6] = {14, 13, 12, 7, 9, 8};
	/* A syscall that the dump interrupted waits for its restart; any other syscall has returned. */
	const int64_t result = (int64_t)r[RAX], number = (int64_t)r[ORIG_RAX];
	const bool is_blocked = result == -4 || result == -512 || result == -513 || result == -514 || result == -516;
	for (int i = 0; i < WEFT_LOOK_REGISTERS; i++)
		thread->stack.registers[i] = r[dwarf[i]];
	thread->stack.has_registers = true;
	thread->call = number >= 0 && number < 4096 && is_blocked ? (long)number : -1;
	for (int i = 0; i < 6; i++)
		thread->args[i] = r[args[i]];
}
#else
enum { STATUS_PID = 32, STATUS_REGISTERS = 112, STATUS_BYTES = 392, STATUS_WORDS = 34 };
enum { MACHINE = EM_AARCH64 };

/* On AArch64, the registers are x0 to x30, sp, pc, pstate.  The first argument of a syscall is lost if the syscall's result has
 * replaced it. */
static void fill_registers(struct look_thread *thread, const uint64_t r[STATUS_WORDS])
{
	const int64_t result = (int64_t)r[0];
	const bool is_blocked = result == -4 || result == -512 || result == -513 || result == -514 || result == -516;
	thread->call = is_blocked && r[8] < 4096 ? (long)r[8] : -1;
	thread->stack.registers[7] = r[31];
	thread->stack.registers[16] = r[32];
	for (int i = 1; i < 6; i++)
		thread->args[i] = r[i];
}
#endif

/* Reads a note NT_PRSTATUS, which describes an OS thread. */
static bool read_status(struct look_target *t, const unsigned char *bytes, size_t size)
{
	uint64_t registers[STATUS_WORDS];
	if (size < STATUS_BYTES)
		return true;
	t->left_out += t->threads.count == LOOK_MAX_THREADS;
	if (t->threads.count == LOOK_MAX_THREADS)
		return true;
	struct look_thread *thread = weft_vec_push(&t->threads);
	if (!thread)
		return false;
	*thread = (struct look_thread){
	    .tid = weft_load_u32(bytes + STATUS_PID), .state = '?', .is_still = true, .start_ns = MOMENT_NS - 1};
	thread->own_tid = thread->tid;
	for (int i = 0; i < STATUS_WORDS; i++)
		registers[i] = weft_load_u64(bytes + STATUS_REGISTERS + 8 * i);
	fill_registers(thread, registers);
	return true;
}

/* Reads NT_PRPSINFO: the process. */
static void read_process_info(struct look_target *t, const unsigned char *bytes, size_t size)
{
	enum { PID = 24, NAME = 40, NAME_BYTES = 16, COMMAND = 56, COMMAND_BYTES = 80 };
	if (size < COMMAND + COMMAND_BYTES)
		return;
	t->pid = weft_load_u32(bytes + PID);
	memcpy(t->process, bytes + NAME, NAME_BYTES);
	memcpy(t->command, bytes + COMMAND, COMMAND_BYTES);
	t->process[NAME_BYTES] = t->command[COMMAND_BYTES] = 0;
	for (size_t n = strlen(t->command); n > 0 && t->command[n - 1] == ' ';)
		t->command[--n] = 0;
}

/* Reads the note NT_FILE, which lists the mapped files.  The path of a mapping is kept even if the dump contains no memory of
 * the mapping. */
static bool read_files(struct look_target *t, const unsigned char *bytes, size_t size)
{
	enum { HEAD = 16, ENTRY = 24 };
	if (size < HEAD)
		return true;
	const uint64_t count = weft_load_u64(bytes), page = weft_load_u64(bytes + 8);
	if (count > (size - HEAD) / ENTRY)
		return true;
	const char *name = (const char *)bytes + HEAD + count * ENTRY, *end = (const char *)bytes + size;
	bool whole = true;
	for (uint64_t i = 0; i < count && name < end && whole; i++) {
		const unsigned char *entry = bytes + HEAD + i * ENTRY;
		const size_t length = strnlen(name, (size_t)(end - name));
		if (name + length == end)
			break;
		const struct look_map map = {.begin = weft_load_u64(entry),
		    .end = weft_load_u64(entry + 8),
		    .offset = weft_load_u64(entry + 16) * page,
		    .is_readable = true,
		    .path = (char *)(uintptr_t)name};
		if (map.begin < map.end && t->maps.count < LOOK_MAX_MAPS)
			whole = weft__look_add_map(t, &map);
		name += length + 1;
	}
	return whole;
}

static bool read_notes(struct look_target *t, struct core *core, uint64_t offset, uint64_t bytes)
{
	const size_t size = bytes < MAX_NOTES ? (size_t)bytes : MAX_NOTES;
	const size_t there = core->size > offset ? (core->size - offset < size ? (size_t)(core->size - offset) : size) : 0;
	unsigned char *notes = malloc(there + 1);
	if (!notes)
		return false;
	struct weft_cursor in = {notes, notes + read_file(core, offset, notes, there)};
	uint32_t name, content, type;
	bool whole = true;
	while (whole && weft_read_u32(&in, &name) && weft_read_u32(&in, &content) && weft_read_u32(&in, &type)) {
		const uint64_t skip = ((uint64_t)name + 3) & ~UINT64_C(3), padded = ((uint64_t)content + 3) & ~UINT64_C(3);
		const uint64_t left = weft_cursor_left(&in);
		if (skip > left || content > left - skip)
			break;
		const unsigned char *at = in.at + skip;
		switch (type) {
		case NT_PRSTATUS: whole = read_status(t, at, content); break;
		case NT_PRPSINFO: read_process_info(t, at, content); break;
		case NT_AUXV:
			core->vector_bytes = content < sizeof core->vector ? content : sizeof core->vector;
			memcpy(core->vector, at, core->vector_bytes);
			break;
		case NT_FILE: whole = read_files(t, at, content); break;
		default: break;
		}
		in.at += padded < left - skip ? skip + padded : left;
	}
	free(notes);
	return whole;
}

/* ---- Headers ---- */

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	return WEFT_ORDER(x->begin, y->begin) ?: WEFT_ORDER(x->offset, y->offset);
}

/* Removes those of the sorted pieces that overlap an earlier piece. */
static void drop_overlaps(struct core *core)
{
	size_t kept = 0;
	for (size_t i = 0; i < core->pieces.count; i++) {
		const struct piece *p = &core->pieces.items[i], *last = kept ? &core->pieces.items[kept - 1] : NULL;
		if (!last || p->begin >= last->begin + last->bytes)
			core->pieces.items[kept++] = *p;
	}
	core->pieces.count = kept;
}

/* Gives the mappings of files the access rights that the headers say, and adds all other mappings.  A dump may leave out a
 * segment's memory, but not its header. */
static bool add_segment(struct look_target *t, size_t files, const Elf64_Phdr *p)
{
	struct look_map map = {.begin = p->p_vaddr,
	    .end = p->p_vaddr + p->p_memsz,
	    .is_readable = p->p_flags & PF_R,
	    .is_writable = p->p_flags & PF_W,
	    .is_executable = p->p_flags & PF_X};
	struct look_map *maps = t->maps.items;
	const size_t i = WEFT_FIND_FIRST(k, 0, files, maps[k].end > map.begin);
	if (i < files && maps[i].begin <= map.begin) {
		maps[i].is_writable |= map.is_writable;
		maps[i].is_executable |= map.is_executable;
		return true;
	}
	return map.begin >= map.end || t->maps.count == LOOK_MAX_MAPS || weft__look_add_map(t, &map);
}

static int compare_begin(const void *a, const void *b)
{
	const struct look_map *x = a, *y = b;
	return WEFT_ORDER(x->begin, y->begin) ?: WEFT_ORDER(x->end, y->end);
}

static bool add_piece(struct core *core, const Elf64_Phdr *p)
{
	const uint64_t left = p->p_offset < core->size ? core->size - p->p_offset : 0,
		       bytes = p->p_filesz < left ? p->p_filesz : left;
	if (!bytes || bytes > UINT64_MAX - p->p_vaddr)
		return true;
	struct piece *slot = weft_vec_push(&core->pieces);
	if (slot)
		*slot = (struct piece){p->p_vaddr, bytes, p->p_offset};
	return slot != NULL;
}

/* Reads all headers twice: first the notes and pieces, then the access rights of the mappings that the notes name. */
static bool read_headers(struct look_target *t, struct core *core, const Elf64_Ehdr *head)
{
	uint64_t count = head->e_phnum;
	Elf64_Shdr first;
	if (count == PN_XNUM && read_file(core, head->e_shoff, &first, sizeof first) == sizeof first)
		count = first.sh_info;
	const uint64_t most = head->e_phoff < core->size ? (core->size - head->e_phoff) / sizeof(Elf64_Phdr) : 0;
	count = count < most ? count : most;
	count = count < MAX_HEADERS ? count : MAX_HEADERS;
	int notes = 0;
	size_t files = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t i = 0; i < count; i++) {
			Elf64_Phdr p;
			if (read_file(core, head->e_phoff + i * sizeof p, &p, sizeof p) < sizeof p)
				break;
			bool whole = true;
			if (pass == 0 && p.p_type == PT_NOTE && notes++ < 4)
				whole = read_notes(t, core, p.p_offset, p.p_filesz);
			else if (pass == 0 && p.p_type == PT_LOAD)
				whole = add_piece(core, &p);
			else if (p.p_type == PT_LOAD && p.p_memsz <= UINT64_MAX - p.p_vaddr)
				whole = add_segment(t, files, &p);
			if (!whole)
				return false;
		}
		weft_sort(t->maps.items, t->maps.count, sizeof *t->maps.items, compare_begin);
		files = t->maps.count;
	}
	weft_sort(core->pieces.items, core->pieces.count, sizeof *core->pieces.items, compare_pieces);
	drop_overlaps(core);
	return true;
}

bool weft_look_is_core(const unsigned char *bytes, size_t size)
{
	enum { TYPE = 16 };
	return size >= TYPE + 2 && memcmp(bytes, ELFMAG, SELFMAG) == 0 && weft_load_u16(bytes + TYPE) == ET_CORE;
}

/* Reads the names of the process, after its modules.  Returns false without memory. */
static bool read_names(struct look_target *t, const struct core *core)
{
	char path[WEFT_PROGRAM_PATH_BYTES];
	uint64_t entry;
	struct stat st;
	if (!weft__look_read_start(t, core->vector, core->vector_bytes, path, sizeof path, &entry))
		return true;
	weft_program_name(t->process, sizeof t->process, path);
	return fstat(core->file, &st) || st.st_uid != geteuid() || weft__look_set_known_path(t, entry, path);
}

static int look(struct look_target *t, struct core *core, struct weft_error *err)
{
	Elf64_Ehdr head;
	if (read_file(core, 0, &head, sizeof head) < sizeof head ||
	    !weft_look_is_core((const unsigned char *)&head, sizeof head) || head.e_phentsize != sizeof(Elf64_Phdr))
		return weft_error_set(err, WEFT_EFORMAT, "the file is not a 64-bit core dump of a process");
	if (head.e_machine != MACHINE || head.e_ident[EI_DATA] != ELFDATA2LSB)
		return weft_error_set(err, WEFT_ENOTSUP, "a core dump of another architecture; read it on such a machine");
	if (!read_headers(t, core, &head))
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (t->threads.count == 0)
		return weft_error_set(
		    err, WEFT_EFORMAT, "the core dump has no OS thread: the file is cut off, or is a dump of a virtual machine");
	if (!weft__look_find_modules(t) || !read_names(t, core) || !weft__look_copy_memory(t) || !weft__look_find_loops(t) ||
	    !weft__look_find_contexts(t) || !weft__look_find_python(t) || !weft__look_find_v8(t))
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	return WEFT_OK;
}

int weft_look_core(struct weft_trace **out, int file, const char *name, weft_look_unwind_fn *unwind, struct weft_error *err)
{
	struct stat st;
	if (fstat(file, &st) || st.st_size < 0)
		return weft_error_set(err, WEFT_EIO, "the file cannot be read: %s", strerror(errno));
	struct core core = {.file = file, .size = (uint64_t)st.st_size};
	struct look_target target = {.is_core = true,
	    .now_ns = MOMENT_NS,
	    .wall_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
	    .read = read_core,
	    .ctx = &core};
	int status = look(&target, &core, err);
	if (status == WEFT_OK)
		status = weft__look_finish(out, &target, unwind, name, err);
	else
		weft_error_set_file(err, name);
	weft__look_free(&target);
	weft_vec_free(&core.pieces);
	return status;
}
