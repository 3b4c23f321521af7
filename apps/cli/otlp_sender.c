/* otlp_sender.c: sends messages to a receiver of OTLP (otlp_sender.h).
 *
 * https://opentelemetry.io/docs/specs/otlp decides which answers are final: the statuses 429, 502, 503 and 504, and requests
 * without an answer, are tried again.  SPDX-License-Identifier: ISC */
#include "otlp_sender.h"

#include "cli.h"
#include "control/deadline.h"

#ifdef WEFT_HAS_CURL

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/otlp.h"

enum {
	MAX_QUEUE_BYTES = 16 << 20,
	MAX_ANSWER_BYTES = 1 << 16,
	CONNECT_S = 10,
	ANSWER_S = 30,
	FIRST_RETRY_S = 1,
	MAX_RETRY_S = 30,
	FLUSH_S = 5
};

struct message {
	struct message *next;
	size_t size, spans;
	unsigned char bytes[];
};

struct cli_otlp_sender {
	char *url, *name; /* the name has no password */
	CURL *curl;
	struct curl_slist *headers;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* with the lock: */
	struct message *first, **last;
	size_t queue_bytes;
	struct cli_otlp_counts counts;
	bool is_ending, is_aborted;
	/* of the thread: */
	unsigned char answer[MAX_ANSWER_BYTES];
	size_t answer_bytes;
	bool has_trouble;  /* whether the newest request failed */
	unsigned failures; /* number of attempts that failed since the last success */
};

enum outcome { TAKEN, UNCONFIRMED, REFUSED, AGAIN };

static size_t take_answer(char *bytes, size_t size, size_t count, void *ctx)
{
	struct cli_otlp_sender *s = ctx;
	const size_t got = size * count, room = sizeof s->answer - s->answer_bytes, taken = got < room ? got : room;
	memcpy(s->answer + s->answer_bytes, bytes, taken);
	s->answer_bytes += taken;
	return taken; /* if the answer is longer than the buffer, libcurl ends the request with an error */
}

/* Ends a request when the sender stops. */
static int check_progress(void *ctx, curl_off_t down, curl_off_t down_now, curl_off_t up, curl_off_t up_now)
{
	struct cli_otlp_sender *s = ctx;
	(void)down, (void)down_now, (void)up, (void)up_now;
	pthread_mutex_lock(&s->lock);
	const bool is_aborted = s->is_aborted;
	pthread_mutex_unlock(&s->lock);
	return is_aborted;
}

/* Prints the first trouble after a success, and the first success after a trouble. */
static void note_trouble(struct cli_otlp_sender *s, bool has_trouble, const char *why)
{
	if (has_trouble && !s->has_trouble)
		cli_note("%s: %s; the spans are kept and sent again", s->name, why);
	else if (!has_trouble && s->has_trouble)
		cli_note("%s: the receiver takes spans again", s->url);
	s->has_trouble = has_trouble;
}

/* Sends one message.  *wait_s gets the time for which the receiver asks; *rejected gets the number of spans that it refused. */
static enum outcome send_message(struct cli_otlp_sender *s, const struct message *message, curl_off_t *wait_s, uint64_t *rejected)
{
	const void *bytes = message->bytes;
	char why[CURL_ERROR_SIZE] = "";
	long status = 0;
	s->answer_bytes = 0;
	*wait_s = 0;
	*rejected = 0;
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, bytes);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)message->size);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, why);
	const CURLcode code = curl_easy_perform(s->curl);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK && status >= 200 && status < 300) {
		note_trouble(s, false, "");
		return weft_otlp_parse_answer(s->answer, s->answer_bytes, rejected) ? TAKEN : UNCONFIRMED;
	}
	const bool is_busy = status == 429 || (status >= 502 && status <= 504);
	if (code != CURLE_OK && code != CURLE_ABORTED_BY_CALLBACK)
		note_trouble(s, true, why[0] ? why : curl_easy_strerror(code));
	if (code != CURLE_OK)
		return AGAIN;
	char text[64];
	snprintf(text, sizeof text, "the receiver answers %ld", status);
	if (is_busy) {
		note_trouble(s, true, text);
		curl_easy_getinfo(s->curl, CURLINFO_RETRY_AFTER, wait_s);
		return AGAIN;
	}
	if (!s->has_trouble)
		cli_note("%s: %s; these spans are counted as rejected", s->name, text);
	s->has_trouble = true;
	return REFUSED;
}

/* Returns how long to wait after a failure: longer after each failure, and not the same for all watchers. */
static int64_t retry_ns(struct cli_otlp_sender *s, curl_off_t asked_s)
{
	int64_t wait_s = FIRST_RETRY_S;
	for (unsigned i = 0; i < s->failures && wait_s < MAX_RETRY_S; i++)
		wait_s *= 2;
	s->failures++;
	if (asked_s > wait_s)
		wait_s = asked_s;
	if (wait_s > MAX_RETRY_S)
		wait_s = MAX_RETRY_S;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return wait_s * INT64_C(750000000) + now.tv_nsec % 1000 * (wait_s * 250000);
}

/* Waits for a change, at most for ns.  With the lock. */
static void wait_for_change(struct cli_otlp_sender *s, int64_t ns)
{
	const struct timespec until = deadline_to_timespec(deadline_after_ns(ns));
	while (!s->is_ending && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
		;
}

/* Counts the spans of the first message, and removes it.  With the lock. */
static void end_first(struct cli_otlp_sender *s, enum outcome outcome, uint64_t rejected)
{
	struct message *message = s->first;
	rejected = rejected < message->spans ? rejected : message->spans;
	s->counts.queued -= message->spans;
	s->counts.rejected += outcome == REFUSED ? message->spans : rejected;
	s->counts.sent += outcome == TAKEN ? message->spans - rejected : 0;
	s->counts.unconfirmed += outcome == UNCONFIRMED ? message->spans - rejected : 0;
	s->counts.lost += outcome == AGAIN ? message->spans : 0;
	s->queue_bytes -= message->size;
	s->first = message->next;
	if (!s->first)
		s->last = &s->first;
	free(message);
}

static void *send_queue(void *ctx)
{
	struct cli_otlp_sender *s = ctx;
	pthread_mutex_lock(&s->lock);
	while (!s->is_aborted && (s->first || !s->is_ending)) {
		if (!s->first) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		curl_off_t wait_s;
		uint64_t rejected;
		const struct message *message = s->first;
		pthread_mutex_unlock(&s->lock);
		const enum outcome outcome = send_message(s, message, &wait_s, &rejected);
		pthread_mutex_lock(&s->lock);
		if (outcome == AGAIN && s->is_ending)
			break;
		if (outcome == AGAIN) {
			wait_for_change(s, retry_ns(s, wait_s));
		} else {
			s->failures = 0;
			end_first(s, outcome, rejected);
		}
	}
	while (s->first)
		end_first(s, AGAIN, 0);
	s->is_aborted = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Completes a URL, and makes a name of it.  Returns false if the text is no URL, or without memory. */
static bool make_url(struct cli_otlp_sender *s, const char *text)
{
	CURLU *url = curl_url();
	char *path = NULL, *scheme = NULL, *whole = NULL, *name = NULL;
	const bool ok =
	    url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_PATH, &path, 0) == CURLUE_OK && (!strcmp(scheme, "http") || !strcmp(scheme, "https")) &&
	    (strcmp(path, "/") != 0 || curl_url_set(url, CURLUPART_PATH, "/v1/traces", 0) == CURLUE_OK) &&
	    curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK && curl_url_set(url, CURLUPART_USER, NULL, 0) == CURLUE_OK &&
	    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_URL, &name, 0) == CURLUE_OK && (s->url = strdup(whole)) && (s->name = strdup(name));
	curl_free(path);
	curl_free(scheme);
	curl_free(whole);
	curl_free(name);
	curl_url_cleanup(url);
	return ok;
}

static bool prepare_curl(struct cli_otlp_sender *s)
{
	s->curl = curl_easy_init();
	s->headers = curl_slist_append(NULL, "Content-Type: application/x-protobuf");
	struct curl_slist *without_expect = s->headers ? curl_slist_append(s->headers, "Expect:") : NULL;
	if (!s->curl || !without_expect)
		return false;
	CURL *c = s->curl;
	return curl_easy_setopt(c, CURLOPT_URL, s->url) == CURLE_OK && curl_easy_setopt(c, CURLOPT_POST, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_HTTPHEADER, s->headers) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_USERAGENT, "weft/" WEFT_VERSION) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)ANSWER_S) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_WRITEDATA, s) == CURLE_OK && curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, check_progress) == CURLE_OK &&
	       curl_easy_setopt(c, CURLOPT_XFERINFODATA, s) == CURLE_OK;
}

static void free_sender(struct cli_otlp_sender *s)
{
	curl_easy_cleanup(s->curl);
	curl_slist_free_all(s->headers);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s->url);
	free(s->name);
	free(s);
}

/* Signals are blocked in the thread, because the thread that follows the traces handles them. */
static bool start_thread(struct cli_otlp_sender *s)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	const bool ok = pthread_create(&s->thread, NULL, send_queue, s) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

int cli_otlp_sender_start(struct cli_otlp_sender **out, const char *verb, const char *url)
{
	pthread_condattr_t monotonic;
	struct cli_otlp_sender *s = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return cli_fail_verb(verb, "%s", weft_status_string(WEFT_ENOMEM));
	s->last = &s->first;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (!make_url(s, url)) {
		free_sender(s);
		return cli_fail_verb(verb, "not a URL: --otlp=%s; use http://HOST:PORT", url);
	}
	if (!prepare_curl(s) || !start_thread(s)) {
		free_sender(s);
		return cli_fail_verb(verb, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*out = s;
	return -1;
}

void cli_otlp_sender_add(struct cli_otlp_sender *s, const void *bytes, size_t size, size_t spans)
{
	struct message *message = malloc(sizeof *message + size);
	pthread_mutex_lock(&s->lock);
	const bool fits = message && s->queue_bytes + size <= MAX_QUEUE_BYTES;
	if (fits) {
		*message = (struct message){.size = size, .spans = spans};
		memcpy(message->bytes, bytes, size);
		*s->last = message;
		s->last = &message->next;
		s->queue_bytes += size;
		s->counts.queued += spans;
		pthread_cond_signal(&s->changed);
	} else {
		if (s->counts.lost == 0)
			cli_note("%s: the queue is full; further spans are counted as lost", s->url);
		s->counts.lost += spans;
	}
	pthread_mutex_unlock(&s->lock);
	if (!fits)
		free(message);
}

struct cli_otlp_counts cli_otlp_sender_count(struct cli_otlp_sender *s)
{
	struct cli_otlp_counts counts = {0};
	if (!s)
		return counts;
	pthread_mutex_lock(&s->lock);
	counts = s->counts;
	pthread_mutex_unlock(&s->lock);
	return counts;
}

void cli_otlp_sender_stop(struct cli_otlp_sender *s)
{
	if (!s)
		return;
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FLUSH_S;
	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_broadcast(&s->changed);
	while (!s->is_aborted && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
		;
	s->is_aborted = true;
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	const struct cli_otlp_counts c = s->counts;
	cli_note("%s: spans: %" PRIu64 " sent, %" PRIu64 " taken without confirmation, %" PRIu64 " rejected, %" PRIu64 " lost",
	    s->name, c.sent, c.unconfirmed, c.rejected, c.lost);
	free_sender(s);
}

#else
#include "feature_list.h"

int cli_otlp_sender_start(struct cli_otlp_sender **out, const char *verb, const char *url)
{
	(void)out, (void)url;
	return cli_fail_without(verb, CLI_FEATURE_OTLP);
}

void cli_otlp_sender_add(struct cli_otlp_sender *sender, const void *bytes, size_t size, size_t spans)
{
	(void)sender, (void)bytes, (void)size, (void)spans;
}

struct cli_otlp_counts cli_otlp_sender_count(struct cli_otlp_sender *sender)
{
	(void)sender;
	return (struct cli_otlp_counts){0};
}

void cli_otlp_sender_stop(struct cli_otlp_sender *sender)
{
	(void)sender;
}

#endif
