/* start.c: starting and stopping, by a call or by the environment.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "record/abi.h"
#include "record/host.h"
#include "record/standby.h"

enum weft__target weft__target;

/* What the metadata says; texts are kept here. */
static struct {
	struct weft_metadata metadata;
	char host[256];
	struct weft__told told;
	bool exact;                          /* the clock's frequency */
	uint64_t begin_clock, begin_wall_ns; /* the pair at the start */
} about;

static char failure[512];

/* What WEFT_TRACE=memory asks for: until the process ends, so that its core dump has it. */
static unsigned char *memory;

static void describe(const struct weft_record_options *o)
{
	if (o->host)
		snprintf(about.host, sizeof about.host, "%s", o->host);
	else if (gethostname(about.host, sizeof about.host))
		about.host[0] = 0;
	about.host[sizeof about.host - 1] = 0;
	if (o->process)
		snprintf(about.told.process, sizeof about.told.process, "%s", o->process);
	if (o->command)
		snprintf(about.told.command, sizeof about.told.command, "%s", o->command);
	about.metadata.host = about.host;
	about.metadata.process = about.told.process;
	about.metadata.command = about.told.command;
	about.metadata.recorder = o->buffer ? NULL : about.told.recorder;
	about.metadata.runtimes = o->runtimes;
	about.metadata.pid = (uint64_t)getpid();
	about.metadata.mode = o->mode == WEFT_RECORD_RING ? "ring" : "grow";
	about.metadata.state = "recording";
	memcpy(about.metadata.uuid, weft__recording.origin.uuid, 16);
}

static void choose_clock(const struct weft_record_options *o)
{
	struct weft__clock_choice choice = {
	    .hz = o->clock_hz, .source = o->is_counter ? "counter" : "caller", .measured = "exact", .exact = true};
	if (!o->clock)
		weft__clock_choose(&choice, o->use_monotonic);
	__atomic_store_n(&weft__clock, o->clock ? o->clock : weft__monotonic, __ATOMIC_RELAXED);
	__atomic_store_n(&weft__recording.use_counter, choice.use_counter, __ATOMIC_RELAXED);
	weft__recording.origin.clock_hz = choice.hz;
	weft__recording.origin.wall_ns = o->wall_ns ? o->wall_ns : weft__wall_ns;
	about.exact = choice.exact;
	about.metadata.clock_hz = choice.hz;
	about.metadata.clock_source = choice.source;
	about.metadata.clock_measured = choice.measured;
	weft__clock_pair(&about.begin_clock, &about.begin_wall_ns);
	about.metadata.clock_origin_ns = (int64_t)about.begin_wall_ns - weft__ticks_ns(about.begin_clock, choice.hz);
}

static int fail(int status, const char *why)
{
	snprintf(failure, sizeof failure, "%s", why);
	return status;
}

static int check(const struct weft_record_options *o)
{
	if (!o || !o->directory == !o->buffer)
		return fail(WEFT_EINVAL, "either a directory or a buffer is needed");
	if (o->clock && !o->clock_hz)
		return fail(WEFT_EINVAL, "a clock needs its frequency");
	if (o->mode != WEFT_RECORD_RING && o->mode != WEFT_RECORD_GROW)
		return fail(WEFT_EINVAL, "the mode is neither ring nor grow");
	return WEFT_OK;
}

/* An OS thread that is late to notice the end of the recording before may still count there what it lost: that needs the lock. */
static int start_definitions(const struct weft_record_options *o)
{
	const char *why = NULL;
	about.metadata.brief = o->buffer != NULL;
	while (!weft__define_lock(1000))
		usleep(10);
	weft__stream_reset(&weft__recording.definitions);
	int status = o->buffer ? weft__buffer_start(o, &about.metadata, o->buffer == memory, &why)
			       : weft__place_begin(o, &about.metadata, failure, sizeof failure);
	weft__define_unlock();
	if (status < 0)
		return why ? fail(status, why) : status;
	weft__target = o->buffer ? WEFT__BUFFER : WEFT__DIRECTORY;
	return WEFT_OK;
}

int weft__start_locked(const struct weft_record_options *o)
{
	if (weft__target != WEFT__NOWHERE)
		return fail(WEFT_EBUSY, "this process records already");
	int status = check(o);
	if (status < 0)
		return status;
	struct weft__recording *r = &weft__recording;
	__atomic_store_n(&r->generation, r->generation + 1, __ATOMIC_RELAXED);
	if (getrandom(r->origin.uuid, sizeof r->origin.uuid, 0) != sizeof r->origin.uuid)
		memcpy(r->origin.uuid, &(uint64_t[2]){weft__wall_ns(), (uint64_t)getpid() << 32 | r->generation},
		    sizeof r->origin.uuid);
	r->origin.uuid[6] = (uint8_t)((r->origin.uuid[6] & 0x0f) | 0x40);
	r->origin.uuid[8] = (uint8_t)((r->origin.uuid[8] & 0x3f) | 0x80);
	r->origin.mode = o->mode;
	r->next_key = 1;
	__atomic_store_n(&r->lost_no_stream, 0, __ATOMIC_RELAXED);
	if (o->first_id > __atomic_load_n(&r->next_id, __ATOMIC_RELAXED))
		__atomic_store_n(&r->next_id, o->first_id, __ATOMIC_RELAXED);
	weft__tell(&about.told);
	choose_clock(o);
	describe(o);
	weft__modules_start();
	if ((status = start_definitions(o)) < 0)
		return status;
	/* Into a directory of this host's, whose readers ask for it. */
	r->long_ticks = weft__target == WEFT__DIRECTORY ? r->origin.clock_hz / 1000 : 0;
	/* The first stream at once, and with room for all of it, so that a full disk is an error here. */
	errno = ENOSPC;
	if (!weft__attach_locked(true)) {
		snprintf(failure, sizeof failure, "%s%sno room for the first ring: %s", o->directory ? o->directory : "",
		    o->directory ? ": " : "", strerror(errno));
		if (weft__target == WEFT__DIRECTORY)
			weft__place_abandon();
		weft__recording.definitions.storage.base = NULL;
		weft__target = WEFT__NOWHERE;
		return WEFT_ENOSPC;
	}
	if (weft__target == WEFT__DIRECTORY) {
		weft__guard_begin();
		weft__threads_prepare();
	}
	failure[0] = 0;
	__atomic_store_n(&weft__mode, r->use_counter ? WEFT__COUNTER_CLOCK : WEFT__CALLED_CLOCK, __ATOMIC_SEQ_CST);
	weft__abi_begin();
	weft__standby_note(true);
	return WEFT_OK;
}

/* `exits`: the process ends.  Its other OS threads still run, though destructors have run already, so the end must come about as
 * soon as without a recording.  Unmapping rings takes milliseconds, and the kernel does it anyway. */
static void finish(bool exits)
{
	if (weft__target == WEFT__NOWHERE)
		return;
	weft__abi_end();
	__atomic_store_n(&weft__mode, WEFT__OFF, __ATOMIC_SEQ_CST);
	weft__threads_retire();
	while (!weft__define_lock(1000))
		usleep(10);
	weft__tell_no_stream();
	if (weft__target == WEFT__DIRECTORY) {
		uint64_t clock = 0, wall = 0;
		weft__clock_pair(&clock, &wall);
		/* Half a second gives a frequency better than the hurried one. */
		if (!about.exact && wall > about.begin_wall_ns + 500000000) {
			about.metadata.clock_hz =
			    (uint64_t)((double)(clock - about.begin_clock) * 1e9 / (double)(wall - about.begin_wall_ns) + 0.5);
			about.metadata.clock_measured = "measured";
			about.metadata.clock_origin_ns =
			    (int64_t)about.begin_wall_ns - weft__ticks_ns(about.begin_clock, about.metadata.clock_hz);
		}
		about.metadata.state = "finished";
		weft__place_end(&about.metadata, weft__threads());
		weft__guard_end();
	}
	if (!exits)
		weft__threads_unmap();
	if (weft__target == WEFT__BUFFER) {
		about.metadata.state = "finished";
		weft__buffer_metadata(&about.metadata);
	}
	weft__recording.definitions.storage.base = NULL;
	weft__define_unlock();
	weft__target = WEFT__NOWHERE;
	weft__standby_note(false);
}

void weft__finish_locked(void)
{
	finish(false);
}

int weft__start_as(const struct weft_record_options *options, size_t bytes)
{
	struct weft_record_options o = {0};
	int saved = errno;
	if (weft__is_strange_child())
		weft__forget_all();
	if (options)
		memcpy(&o, options, bytes < sizeof o ? bytes : sizeof o);
	if (o.clock || o.use_monotonic)
		weft__standby_leave();
	weft__threads_lock();
	int status = options && bytes > sizeof o
			 ? fail(WEFT_ENOTSUP, "the program was built with a newer version of weft/record.h")
			 : weft__start_locked(options ? &o : NULL);
	bool is_file = weft__target == WEFT__DIRECTORY;
	weft__threads_unlock();
	if (is_file)
		weft__guard_this_thread();
	errno = saved;
	return status;
}

/* What 0.1.0's header calls: its options end before what was taken of runtimes. */
WEFT__API int weft__start(const struct weft_record_options *options);
int weft__start(const struct weft_record_options *options)
{
	return weft__start_as(options, offsetof(struct weft_record_options, runtimes));
}

const char *weft__start_error(void)
{
	return failure;
}

static void stop(bool exits)
{
	int saved = errno;
	if (weft__is_strange_child())
		weft__forget_all();
	weft__threads_lock();
	finish(exits);
	weft__threads_unlock();
	errno = saved;
}

void weft__stop(void)
{
	stop(false);
}

const char *weft__version(void)
{
#ifdef WEFT_VERSION
	return WEFT_VERSION;
#else
	return "unknown";
#endif
}

uint64_t weft__now(void)
{
	return weft__time();
}

void weft__forget(void)
{
	weft__mode = WEFT__OFF;
	weft__target = WEFT__NOWHERE;
	weft__place_child();
	weft__recording.definitions.storage.base = NULL;
}

static bool parse_size(const char *text, uint64_t *out)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	unsigned shift = 0;
	switch (*end) {
	case 'k':
	case 'K': shift = 10; break;
	case 'm':
	case 'M': shift = 20; break;
	case 'g':
	case 'G': shift = 30; break;
	default: break;
	}
	if (end == text || text[0] == '-' || end[shift != 0] || errno || n > UINT64_MAX >> shift)
		return false;
	*out = (uint64_t)n << shift;
	return true;
}

/* Pages that cost nothing until they are written to. */
static int allocate_memory(struct weft_record_options *o)
{
	enum { STREAMS = 16, ABOUT = 2 << 20 }; /* besides the rings: metadata, definitions */
	const uint64_t ring_default = 4 << 20, most = SIZE_MAX / 2;
	uint64_t ring = o->size_bytes ? o->size_bytes : ring_default;
	o->streams = o->streams ? o->streams : STREAMS;
	if (ring > (most - ABOUT) / o->streams)
		return fail(WEFT_EINVAL, "there is no memory for rings so large");
	o->buffer_bytes = (size_t)ring * o->streams + ABOUT;
	void *pages = mmap(NULL, o->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED)
		return fail(WEFT_ENOMEM, "there is no memory for rings so large");
	memory = pages;
	o->directory = NULL;
	o->buffer = memory;
	return WEFT_OK;
}

/* DIR|memory[,size=64M][,mode=ring|grow][,packets=N][,packet=4096][,streams=N][,overwrite][,standby] */
static int start_by_environment(const char *text)
{
	char copy[4096];
	if (strlen(text) >= sizeof copy)
		return fail(WEFT_EINVAL, "too long");
	strcpy(copy, text);
	struct weft_record_options o = {.directory = copy};
	char *save = NULL;
	if (copy[0] == ',' || !strtok_r(copy, ",", &save))
		return fail(WEFT_EINVAL, "no directory is given");
	bool is_memory = !strcmp(copy, "memory"), stands_by = false;
	for (char *word; (word = strtok_r(NULL, ",", &save));) {
		uint64_t n = 0;
		if (!strncmp(word, "size=", 5) && parse_size(word + 5, &o.size_bytes))
			continue;
		if (!strncmp(word, "packets=", 8) && parse_size(word + 8, &n) && n <= 65536) {
			o.packets = (unsigned)n;
			continue;
		}
		if (is_memory && !strncmp(word, "packet=", 7) && parse_size(word + 7, &o.packet_bytes))
			continue;
		if (is_memory && !strncmp(word, "streams=", 8) && parse_size(word + 8, &n) && n <= 65536) {
			o.streams = (unsigned)n;
			continue;
		}
		if (!strcmp(word, "mode=ring") || !strcmp(word, "mode=grow")) {
			o.mode = word[5] == 'r' ? WEFT_RECORD_RING : WEFT_RECORD_GROW;
			continue;
		}
		if (!is_memory && !strcmp(word, "overwrite")) {
			o.overwrite = true;
			continue;
		}
		if (!is_memory && !strcmp(word, "standby")) {
			stands_by = true;
			continue;
		}
		snprintf(failure, sizeof failure,
		    "\"%s\" is not an option; there are size=64M, mode=ring, mode=grow, packets=N, %s", word,
		    is_memory ? "packet=4096, streams=N" : "overwrite, standby");
		return WEFT_EINVAL;
	}
	if (stands_by)
		return weft__standby_begin(&o) ? WEFT_OK : fail(WEFT_EINVAL, "the program cannot stand by");
	int status = is_memory ? allocate_memory(&o) : WEFT_OK;
	return status < 0 ? status : weft__start_as(&o, sizeof o);
}

__attribute__((constructor)) static void load(void)
{
	weft__clock = weft__monotonic;
	weft__recording.use_counter = weft__clock_has_counter();
	weft__recording.enter = weft__signals_block;
	weft__recording.leave = weft__signals_restore;
	weft__threads_init();
	const char *wanted = secure_getenv("WEFT_TRACE");
	/* The one thing that the library ever prints: nobody else could tell who asked for it in this way. */
	if (wanted && *wanted && start_by_environment(wanted) < 0)
		dprintf(STDERR_FILENO, "weft: WEFT_TRACE: %s\n", failure);
}

/* At exit: the library is never unloaded (-z nodelete). */
__attribute__((destructor)) static void unload(void)
{
	stop(true);
}
