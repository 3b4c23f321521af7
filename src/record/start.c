/* start.c: starts and stops the recording, by a call or by environment variables.  SPDX-License-Identifier: ISC */
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

/* Facts for the metadata, with storage for their texts. */
static struct {
	struct weft_metadata metadata;
	char host[256];
	struct weft__process_info process_info;
	bool exact;                          /* whether the clock's frequency is exact */
	uint64_t begin_clock, begin_wall_ns; /* readings of both clocks at the start */
} recording_info;

static char failure[512];

/* Memory for WEFT_TRACE=memory, which stays until the process ends, so that a core dump contains it. */
static unsigned char *memory_buffer;

static void fill_metadata(const struct weft_record_options *o)
{
	if (o->host)
		snprintf(recording_info.host, sizeof recording_info.host, "%s", o->host);
	else if (gethostname(recording_info.host, sizeof recording_info.host))
		recording_info.host[0] = 0;
	recording_info.host[sizeof recording_info.host - 1] = 0;
	if (o->process)
		snprintf(recording_info.process_info.process, sizeof recording_info.process_info.process, "%s", o->process);
	if (o->command)
		snprintf(recording_info.process_info.command, sizeof recording_info.process_info.command, "%s", o->command);
	recording_info.metadata.host = recording_info.host;
	recording_info.metadata.process = recording_info.process_info.process;
	recording_info.metadata.command = recording_info.process_info.command;
	recording_info.metadata.recorder = o->buffer ? NULL : recording_info.process_info.recorder;
	recording_info.metadata.runtimes = o->runtimes;
	recording_info.metadata.pid = (uint64_t)getpid();
	recording_info.metadata.mode = o->mode == WEFT_RECORD_RING ? "ring" : "grow";
	recording_info.metadata.state = "recording";
	memcpy(recording_info.metadata.uuid, weft__recording.origin.uuid, 16);
}

static void choose_clock(const struct weft_record_options *o)
{
	struct weft__clock_choice choice = {
	    .hz = o->clock_hz, .source = o->is_counter ? "counter" : "caller", .measured = "exact", .exact = true};
	if (!o->clock)
		weft__clock_choose(&choice, o->use_monotonic);
	__atomic_store_n(&weft__clock, o->clock ? o->clock : weft__monotonic_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&weft__recording.use_counter, choice.use_counter, __ATOMIC_RELAXED);
	weft__recording.origin.clock_hz = choice.hz;
	weft__recording.origin.wall_ns = o->wall_ns ? o->wall_ns : weft__wall_ns;
	recording_info.exact = choice.exact;
	recording_info.metadata.clock_hz = choice.hz;
	recording_info.metadata.clock_source = choice.source;
	recording_info.metadata.clock_measured = choice.measured;
	weft__clock_pair(&recording_info.begin_clock, &recording_info.begin_wall_ns);
	recording_info.metadata.clock_origin_ns =
	    (int64_t)recording_info.begin_wall_ns - weft__ticks_ns(recording_info.begin_clock, choice.hz);
}

static int set_failure(int status, const char *why)
{
	snprintf(failure, sizeof failure, "%s", why);
	return status;
}

static int check_options(const struct weft_record_options *o)
{
	if (!o || !o->directory == !o->buffer)
		return set_failure(WEFT_EINVAL, "a directory or a buffer is required");
	if (o->clock && !o->clock_hz)
		return set_failure(WEFT_EINVAL, "a clock requires its frequency");
	if (o->mode != WEFT_RECORD_RING && o->mode != WEFT_RECORD_GROW)
		return set_failure(WEFT_EINVAL, "the mode must be ring or grow");
	return WEFT_OK;
}

/* Starts the definitions.  An OS thread that notices late that the previous recording has ended may still count its losses
 * there, under the lock. */
static int start_definitions(const struct weft_record_options *o)
{
	const char *why = NULL;
	recording_info.metadata.brief = o->buffer != NULL;
	while (!weft__define_lock(1000))
		usleep(10);
	weft__stream_reset(&weft__recording.definitions);
	int status = o->buffer ? weft__buffer_start(o, &recording_info.metadata, o->buffer == memory_buffer, &why)
			       : weft__trace_dir_begin(o, &recording_info.metadata, failure, sizeof failure);
	weft__define_unlock();
	if (status < 0)
		return why ? set_failure(status, why) : status;
	weft__target = o->buffer ? WEFT__TARGET_BUFFER : WEFT__TARGET_DIRECTORY;
	return WEFT_OK;
}

int weft__start_locked(const struct weft_record_options *o)
{
	if (weft__target != WEFT__TARGET_NONE)
		return set_failure(WEFT_EBUSY, "this process is recording already");
	int status = check_options(o);
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
	weft__process_info_read(&recording_info.process_info);
	choose_clock(o);
	fill_metadata(o);
	weft__modules_start();
	if ((status = start_definitions(o)) < 0)
		return status;
	/* CPU times are recorded only into a directory, because only readers of this host use them. */
	r->long_ticks = weft__target == WEFT__TARGET_DIRECTORY ? r->origin.clock_hz / 1000 : 0;
	/* The first stream is made now, with all of its space, so that a full disk is an error of the start. */
	errno = ENOSPC;
	if (!weft__attach_locked(true)) {
		snprintf(failure, sizeof failure, "%s%sno space for the first ring: %s", o->directory ? o->directory : "",
		    o->directory ? ": " : "", strerror(errno));
		if (weft__target == WEFT__TARGET_DIRECTORY)
			weft__trace_dir_abandon();
		weft__recording.definitions.storage.base = NULL;
		weft__target = WEFT__TARGET_NONE;
		return WEFT_ENOSPC;
	}
	if (weft__target == WEFT__TARGET_DIRECTORY) {
		weft__sigbus_begin();
		weft__threads_make_spares();
	}
	failure[0] = 0;
	__atomic_store_n(&weft__mode, r->use_counter ? WEFT__COUNTER_CLOCK : WEFT__CALLED_CLOCK, __ATOMIC_SEQ_CST);
	weft__abi_begin();
	weft__standby_set_recording(true);
	return WEFT_OK;
}

/* Replaces a frequency that was measured in 2 ms, because half a second gives a better frequency.  A difference of more than a
 * thousandth means that the wall clock was set meanwhile. */
static void improve_frequency(uint64_t clock, uint64_t wall_ns)
{
	struct weft_metadata *m = &recording_info.metadata;
	if (recording_info.exact || wall_ns <= recording_info.begin_wall_ns + 500000000)
		return;
	const double hz = (double)(clock - recording_info.begin_clock) * 1e9 / (double)(wall_ns - recording_info.begin_wall_ns);
	const double ratio = hz / (double)m->clock_hz;
	if (!(ratio > 0.999 && ratio < 1.001))
		return;
	m->clock_hz = (uint64_t)(hz + 0.5);
	m->clock_measured = "measured";
	m->clock_origin_ns = (int64_t)recording_info.begin_wall_ns - weft__ticks_ns(recording_info.begin_clock, m->clock_hz);
}

/* State of the program when its recording ends. */
enum end { EXITS, STOPS_ITSELF, GOES_ON };

/* Ends the recording.  At the end of a process, its other OS threads still run
 * although destructors have run, so the process must exit as fast as without a recording.  Rings are then not unmapped, because
 * that takes milliseconds, and the kernel does it anyway. */
static void finish_recording(enum end end)
{
	if (weft__target == WEFT__TARGET_NONE)
		return;
	recording_info.metadata.state = end == GOES_ON ? "stopped" : "finished";
	weft__abi_end();
	__atomic_store_n(&weft__mode, WEFT__OFF, __ATOMIC_SEQ_CST);
	weft__threads_retire();
	weft__memory_end();
	while (!weft__define_lock(1000))
		usleep(10);
	weft__write_lost_no_stream();
	if (weft__target == WEFT__TARGET_DIRECTORY) {
		uint64_t clock = 0, wall = 0;
		weft__clock_pair(&clock, &wall);
		improve_frequency(clock, wall);
		weft__trace_dir_end(&recording_info.metadata, weft__threads());
		weft__sigbus_end();
	}
	if (end != EXITS)
		weft__threads_unmap();
	if (weft__target == WEFT__TARGET_BUFFER)
		weft__buffer_metadata(&recording_info.metadata);
	weft__recording.definitions.storage.base = NULL;
	weft__define_unlock();
	weft__target = WEFT__TARGET_NONE;
	weft__standby_set_recording(false);
}

void weft__stop_locked(void)
{
	finish_recording(GOES_ON);
}

int weft__start_as(const struct weft_record_options *options, size_t bytes)
{
	struct weft_record_options o = {0};
	int saved = errno;
	if (weft__is_unannounced_child())
		weft__reset_after_fork();
	if (options)
		memcpy(&o, options, bytes < sizeof o ? bytes : sizeof o);
	if (o.clock || o.use_monotonic)
		weft__standby_disable();
	weft__threads_lock();
	int status = options && bytes > sizeof o
			 ? set_failure(WEFT_ENOTSUP, "the program was built with a newer version of weft/record.h")
			 : weft__start_locked(options ? &o : NULL);
	bool is_file = weft__target == WEFT__TARGET_DIRECTORY;
	weft__threads_unlock();
	if (is_file)
		weft__sigbus_unblock();
	errno = saved;
	return status;
}

/* Entry point of the header of version 0.1.0, whose options end before `runtimes`. */
WEFT__API int weft__start(const struct weft_record_options *options);
int weft__start(const struct weft_record_options *options)
{
	return weft__start_as(options, offsetof(struct weft_record_options, runtimes));
}

const char *weft__start_error(void)
{
	return failure;
}

static void stop_recording(bool is_exiting)
{
	int saved = errno;
	if (weft__is_unannounced_child())
		weft__reset_after_fork();
	weft__threads_lock();
	finish_recording(is_exiting ? EXITS : STOPS_ITSELF);
	weft__threads_unlock();
	errno = saved;
}

void weft__stop(void)
{
	stop_recording(false);
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

void weft__recording_reset(void)
{
	weft__mode = WEFT__OFF;
	weft__target = WEFT__TARGET_NONE;
	weft__trace_dir_after_fork();
	weft__recording.definitions.storage.base = weft__recording.memory.storage.base = NULL;
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

/* Maps memory for the trace; its pages use no memory until they are written. */
static int allocate_memory(struct weft_record_options *o)
{
	/* Space in addition to the rings, for metadata and definitions. */
	enum { DEFAULT_STREAMS = 16, OVERHEAD_BYTES = 2 << 20 };
	const uint64_t ring_default = 4 << 20, most = SIZE_MAX / 2;
	uint64_t ring = o->size_bytes ? o->size_bytes : ring_default;
	o->streams = o->streams ? o->streams : DEFAULT_STREAMS;
	if (ring > (most - OVERHEAD_BYTES) / o->streams)
		return set_failure(WEFT_EINVAL, "not enough memory for rings of this size");
	o->buffer_bytes = (size_t)ring * o->streams + OVERHEAD_BYTES;
	void *pages = mmap(NULL, o->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED)
		return set_failure(WEFT_ENOMEM, "not enough memory for rings of this size");
	memory_buffer = pages;
	o->directory = NULL;
	o->buffer = memory_buffer;
	return WEFT_OK;
}

/* Parses DIR|memory[,size=64M][,mode=ring|grow][,packets=N][,packet=4096][,streams=N][,overwrite][,standby] */
static int start_by_environment(const char *text)
{
	char copy[4096];
	if (strlen(text) >= sizeof copy)
		return set_failure(WEFT_EINVAL, "too long");
	strcpy(copy, text);
	struct weft_record_options o = {.directory = copy};
	char *save = NULL;
	if (copy[0] == ',' || !strtok_r(copy, ",", &save))
		return set_failure(WEFT_EINVAL, "no directory is given");
	bool is_memory = !strcmp(copy, "memory"), is_standby = false;
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
			is_standby = true;
			continue;
		}
		snprintf(failure, sizeof failure,
		    "\"%s\" is not an option; there are size=64M, mode=ring, mode=grow, packets=N, %s", word,
		    is_memory ? "packet=4096, streams=N" : "overwrite, standby");
		return WEFT_EINVAL;
	}
	if (is_standby)
		return weft__standby_enable(&o) ? WEFT_OK : set_failure(WEFT_EINVAL, "cannot put the program on standby");
	int status = is_memory ? allocate_memory(&o) : WEFT_OK;
	return status < 0 ? status : weft__start_as(&o, sizeof o);
}

__attribute__((constructor)) static void on_load(void)
{
	weft__clock = weft__monotonic_ns;
	weft__recording.use_counter = weft__clock_has_counter();
	weft__recording.enter = weft__signals_block;
	weft__recording.leave = weft__signals_restore;
	weft__threads_init();
	const char *wanted = secure_getenv("WEFT_TRACE");
	/* The message below is the only message that the library ever prints, because WEFT_TRACE has no other way to report an
	 * error. */
	if (wanted && *wanted && start_by_environment(wanted) < 0)
		dprintf(STDERR_FILENO, "weft: WEFT_TRACE: %s\n", failure);
}

/* The destructor runs at exit, because the library is never unloaded (-z nodelete). */
__attribute__((destructor)) static void on_unload(void)
{
	stop_recording(true);
}
