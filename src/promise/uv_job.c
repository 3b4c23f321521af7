/* uv_job.c: runs jobs on libuv's thread pool: lookups of host names, and functions. uv_file.c has the file operations.
 * SPDX-License-Identifier: ISC */
#include "promise/loop.h"

struct lookup {
	struct weft__job job;
	uv_getaddrinfo_t request;
};

struct work {
	struct weft__job job;
	uv_work_t request;
	weft_id id;
	weft_uv_work_fn *f;
	void *ctx;
	weft_destroy_fn *destroy;
	struct weft_value result;
};

/* ---- Jobs ---- */

/* Cancels a job; a job that is already running continues to its end, and its result is destroyed. */
static void cancel_job(void *ctx)
{
	struct weft__job *job = ctx;
	job->cancelled = true;
	uv_cancel(job->request);
}

static void end_job(struct weft__uv_object *object)
{
	weft__uv_object_unlist(object);
	cancel_job(object);
}

void *weft__job_start(struct weft_record_site *site, struct weft_uv *uv, enum weft_kind kind, const char *label, size_t bytes,
    size_t request_offset, struct weft_promise **p)
{
	struct weft__job *job = calloc(1, bytes);
	if (!job) {
		*p = weft__uv_failed(WEFT_PROMISE_ENOMEM);
		return NULL;
	}
	*p = weft__uv_promise(site, kind, label, cancel_job, job, &job->resolver);
	if (!job->resolver) {
		free(job);
		return NULL;
	}
	job->request = (uv_req_t *)(void *)((char *)job + request_offset);
	job->request->data = job;
	weft__uv_object_add(uv, &job->object, end_job);
	return job;
}

void weft__job_end(struct weft__job *job, int status, void *value, weft_destroy_fn *destroy)
{
	struct weft_uv *uv = job->object.uv;
	struct weft_resolver *resolver = job->resolver;
	weft__uv_object_closed(&job->object);
	free(job);
	weft__uv_wakeup(uv, resolver, status, value, destroy);
}

/* ---- Host names ---- */

static void free_addresses(void *addresses)
{
	uv_freeaddrinfo(addresses);
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
	/* libuv has a separate error code for a cancelled getaddrinfo(). */
	weft__job_end(request->data, status == UV_EAI_CANCELED ? UV_ECANCELED : status, addresses, free_addresses);
}

struct weft_promise *weft__uv_getaddrinfo(
    struct weft_record_site *site, struct weft_uv *uv, const char *node, const char *service, const struct addrinfo *hints)
{
	struct weft_promise *p;
	struct lookup *lookup =
	    weft__job_start(site, uv, WEFT_KIND_GETADDRINFO, node, sizeof *lookup, offsetof(struct lookup, request), &p);
	if (!lookup)
		return p;
	int status = uv_getaddrinfo(uv->loop, &lookup->request, on_addresses, node, service, hints);
	if (status < 0)
		weft__job_end(&lookup->job, status, NULL, NULL);
	return p;
}

/* ---- Functions ---- */

/* Runs a function on the pool: it records into the stream of the pool's OS thread, and its promise is the running promise
 * there. */
static void do_work(uv_work_t *request)
{
	struct work *work = request->data;
	weft_resume(work->id);
	work->result = work->f(work->ctx);
	weft_idle(WEFT_IDLE_WAIT);
}

static void on_work_done(uv_work_t *request, int status)
{
	struct work *work = request->data;
	struct weft_value result = work->result;
	if (work->destroy)
		work->destroy(work->ctx);
	weft__job_end(&work->job, status, result.pointer, result.destroy);
}

struct weft_promise *weft__uv_work(
    struct weft_record_site *site, struct weft_uv *uv, weft_uv_work_fn *f, void *ctx, weft_destroy_fn *destroy)
{
	struct weft_promise *p;
	struct work *work = weft__job_start(site, uv, WEFT_KIND_WORK, NULL, sizeof *work, offsetof(struct work, request), &p);
	if (!work) {
		if (destroy)
			destroy(ctx);
		return p;
	}
	work->id = weft_promise_id(p);
	work->f = f;
	work->ctx = ctx;
	work->destroy = destroy;
	uv_queue_work(uv->loop, &work->request, do_work, on_work_done); /* uv_queue_work() fails only if do_work is NULL */
	return p;
}
