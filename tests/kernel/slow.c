/* slow.c SCENE [PLACE]: a libuv program with a callback that is slow for the reason that SCENE names; `eight` has eight slow
 * callbacks, 100 ms apart.
 *
 * Other timers are due each 5 ms.  Prints the values that were measured inside the slow callback: "wall NS cpu NS given N taken N
 * minor N major N".  `hog` is no scene: it uses its CPU until it is killed.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define LENGTH_NS 40000000
#define FILE_BYTES (8 << 20)

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t begin_ns;

static int goes_on(void)
{
	return now_ns(CLOCK_MONOTONIC_RAW) - begin_ns < LENGTH_NS;
}

/* ---- Scenes ---- */

static volatile uint64_t sink;

static void compute(int64_t ns)
{
	int64_t from_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns < ns)
		for (int i = 0; i < 10000; i++)
			sink += (uint64_t)i * i;
}

static void spin(void)
{
	compute(LENGTH_NS);
}

static int make_file(void)
{
	char path[] = "weft-slow-XXXXXX", *bytes = malloc(FILE_BYTES);
	int fd = mkstemp(path);
	if (fd < 0 || !bytes)
		exit(77);
	unlink(path);
	memset(bytes, 7, FILE_BYTES);
	if (write(fd, bytes, FILE_BYTES) != FILE_BYTES || fsync(fd) != 0)
		exit(77);
	free(bytes);
	return fd;
}

static int file;

static void forget_file(void)
{
	posix_fadvise(file, 0, FILE_BYTES, POSIX_FADV_DONTNEED);
}

static void sync_file(void)
{
	char bytes[65536];
	memset(bytes, 1, sizeof bytes);
	while (goes_on())
		if (pwrite(file, bytes, sizeof bytes, 0) < 0 || fsync(file) != 0)
			exit(1);
}

static void read_cold(void)
{
	char bytes[4096];
	while (goes_on()) {
		forget_file();
		posix_fadvise(file, 0, FILE_BYTES, POSIX_FADV_RANDOM);
		for (off_t at = 0; at < FILE_BYTES && goes_on(); at += 65536)
			if (pread(file, bytes, sizeof bytes, at) < 0)
				exit(1);
	}
}

static void map_cold(void)
{
	while (goes_on()) {
		volatile char *bytes = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
		if (bytes == MAP_FAILED)
			exit(1);
		madvise((void *)bytes, FILE_BYTES, MADV_RANDOM);
		forget_file();
		for (off_t at = 0; at < FILE_BYTES && goes_on(); at += 65536)
			sink += (uint64_t)bytes[at];
		munmap((void *)bytes, FILE_BYTES);
	}
}

static void touch(void)
{
	while (goes_on()) {
		const size_t size = 16 << 20;
		volatile char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bytes == MAP_FAILED)
			exit(1);
		madvise((void *)bytes, size, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < size; at += 4096)
			bytes[at] = 1;
		munmap((void *)bytes, size);
	}
}

static void nap(void)
{
	struct timespec length = {0, LENGTH_NS};
	nanosleep(&length, NULL);
}

static const char *place;

/* Reads pages of a file in the page cache, until a file of this name exists, but at most 100 times. */
static void wait_for_pages(void)
{
	volatile char *bytes = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
	if (bytes == MAP_FAILED)
		exit(1);
	for (int i = 0; i < 100 && access(place, F_OK) != 0; i++) {
		madvise((void *)bytes, FILE_BYTES, MADV_DONTNEED);
		madvise((void *)bytes, FILE_BYTES, MADV_RANDOM);
		forget_file();
		for (off_t at = 0; at < FILE_BYTES; at += 16384)
			sink += (uint64_t)bytes[at];
	}
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *hold(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&both);
	usleep(LENGTH_NS / 1000);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void wait_for_lock(void)
{
	pthread_t thread;
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&thread, NULL, hold, NULL);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

/* Waits until another process opens the FIFO. */
static void open_fifo(void)
{
	int fd = open(place, O_RDONLY);
	if (fd < 0)
		exit(1);
	close(fd);
}

/* Waits until the peer sends bytes; PLACE is the port of the peer. */
static void ask_peer(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(place))};
	char byte;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || read(fd, &byte, 1) != 1)
		exit(1);
	close(fd);
}

/* Another process competes for the one CPU that this process leaves itself. */
static void beside_hog(void)
{
	cpu_set_t before, one;
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	sched_getaffinity(0, sizeof before, &before);
	sched_setaffinity(0, sizeof one, &one);
	const pid_t hog = fork();
	for (volatile int spins = 1; hog == 0 && spins;)
		;
	compute(LENGTH_NS);
	if (hog > 0) {
		kill(hog, SIGKILL);
		waitpid(hog, NULL, 0);
	}
	sched_setaffinity(0, sizeof before, &before);
}

static void (*const eight[])(void) = {spin, beside_hog, sync_file, read_cold, map_cold, touch, nap, wait_for_lock};

enum { EIGHT = sizeof eight / sizeof *eight };

/* Each call of the timer does a little work, which is no fault. */
static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} scenes[] = {{"spin", spin}, {"crowded", spin}, {"fsync", sync_file}, {"cold", read_cold}, {"mapped", map_cold},
    {"touch", touch}, {"nanosleep", nap}, {"mutex", wait_for_lock}, {"healthy", nothing}, {"fifo", open_fifo}, {"peer", ask_peer},
    {"pages", wait_for_pages}};

/* ---- Program ---- */

static void (*scene)(void);
static int ticks_left, done;

static void slow(uv_timer_t *timer)
{
	struct rusage before, after;
	getrusage(RUSAGE_THREAD, &before);
	int64_t cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	begin_ns = now_ns(CLOCK_MONOTONIC_RAW);
	(scene ? scene : eight[done++])();
	int64_t wall_ns = now_ns(CLOCK_MONOTONIC_RAW) - begin_ns;
	cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	getrusage(RUSAGE_THREAD, &after);
	printf("wall %lld cpu %lld given %ld taken %ld minor %ld major %ld\n", (long long)wall_ns, (long long)cpu_ns,
	    after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt,
	    after.ru_majflt - before.ru_majflt);
	uv_close((uv_handle_t *)timer, NULL);
}

static void tick(uv_timer_t *timer)
{
	if (scene == nothing)
		compute(7000000);
	if (--ticks_left == 0)
		uv_close((uv_handle_t *)timer, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "hog") == 0)
		for (;;)
			compute(1000000000);
	for (size_t i = 0; argc >= 2 && i < sizeof scenes / sizeof *scenes; i++)
		if (strcmp(argv[1], scenes[i].name) == 0)
			scene = scenes[i].run;
	place = argc > 2 ? argv[2] : "";
	const int count = scene || argc < 2 || strcmp(argv[1], "eight") != 0 ? 1 : EIGHT;
	if (!scene && count == 1)
		return 2;
	ticks_left = scene == nothing ? 20 : 60 * count;
	file = make_file();
	uv_timer_t slow_timers[EIGHT], tick_timer;
	for (int i = 0; i < count; i++)
		uv_timer_init(uv_default_loop(), &slow_timers[i]);
	uv_timer_init(uv_default_loop(), &tick_timer);
	uv_update_time(uv_default_loop()); /* the start of recording may have taken long */
	for (int i = 0; i < count; i++)
		uv_timer_start(&slow_timers[i], slow, 50 + 100 * (uint64_t)i, 0);
	uv_timer_start(&tick_timer, tick, 5, 5);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
