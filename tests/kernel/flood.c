/* flood.c CPU: keeps the CPU that handles packets to 127.0.0.1 busy, in bursts, until a signal ends it.
 *
 * A filter inspects each packet of a burst for some microseconds.  Between bursts there is no packet, so that the kernel does not
 * move the work to ksoftirqd.  The program itself runs on CPU.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { PACKETS = 32, STEPS = 400, PAUSE_NS = 150000 };

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Opens a socket whose filter drops every packet after some divisions. */
static int open_filtered(struct sockaddr_in *address)
{
	static struct sock_filter steps[2 * STEPS + 1];
	const struct sock_fprog program = {2 * STEPS + 1, steps};
	socklen_t size = sizeof *address;
	for (int i = 0; i < STEPS; i++) {
		steps[2 * i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, UINT32_MAX);
		steps[2 * i + 1] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 7);
	}
	steps[2 * STEPS] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	const int s = socket(AF_INET, SOCK_DGRAM, 0);
	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (s < 0 || bind(s, (struct sockaddr *)address, sizeof *address) != 0 ||
	    getsockname(s, (struct sockaddr *)address, &size) != 0 ||
	    setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
		return -1;
	return s;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to;
	char byte = 0;
	struct iovec bytes = {&byte, 1};
	struct mmsghdr packets[PACKETS] = {0};
	cpu_set_t own;
	CPU_ZERO(&own);
	CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &own);
	const int filtered = open_filtered(&to), from = socket(AF_INET, SOCK_DGRAM, 0);
	if (filtered < 0 || from < 0 || sched_setaffinity(0, sizeof own, &own) != 0) {
		perror("flood");
		return 1;
	}
	for (int i = 0; i < PACKETS; i++)
		packets[i].msg_hdr =
		    (struct msghdr){.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &bytes, .msg_iovlen = 1};
	puts("ready");
	fflush(stdout);
	for (;;) {
		sendmmsg(from, packets, PACKETS, 0);
		for (const int64_t begin_ns = now_ns(); now_ns() - begin_ns < PAUSE_NS;)
			;
	}
}
