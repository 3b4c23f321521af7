/* redis.c: a module of redis with a command that computes, "work MICROSECONDS", and one that ends the server, "end".
 *
 * redis passes its functions by name, so that no header of redis is needed.  SPDX-License-Identifier: ISC */
#include "truth.h"

struct context {
	int (*get)(const char *name, void *function);
};

typedef int command_fn(struct context *context, void **words, int count);

static unsigned long long (*get_client_id)(struct context *);
static int (*get_client_info)(void *info, unsigned long long id);
static int (*reply)(struct context *, long long value);
static const char *(*get_text)(const void *word, size_t *bytes);

/* The part of RedisModuleClientInfo, version 1, that this module reads. */
struct client_info {
	unsigned long long version, flags, id;
	char address[46];
	unsigned short port, database;
};

static int run_work(struct context *context, void **words, int count)
{
	struct client_info info = {.version = 1};
	size_t bytes;
	get_client_info(&info, get_client_id(context));
	work(info.port, atof(get_text(words[1], &bytes)));
	return reply(context, 1);
}

static int run_end(struct context *context, void **words, int count)
{
	fclose(truth);
	_Exit(0);
}

int RedisModule_OnLoad(struct context *context, void **words, int count);
int RedisModule_OnLoad(struct context *context, void **words, int count)
{
	size_t bytes;
	void (*set_attributes)(struct context *, const char *name, int version, int api);
	int (*create)(struct context *, const char *name, command_fn *run, const char *flags, int first, int last, int step);
	if (context->get("RedisModule_SetModuleAttribs", &set_attributes) || context->get("RedisModule_CreateCommand", &create) ||
	    context->get("RedisModule_GetClientId", &get_client_id) ||
	    context->get("RedisModule_GetClientInfoById", &get_client_info) ||
	    context->get("RedisModule_ReplyWithLongLong", &reply) || context->get("RedisModule_StringPtrLen", &get_text))
		return 1;
	begin_truth(get_text(words[0], &bytes));
	set_attributes(context, "truth", 1, 1);
	return create(context, "work", run_work, "readonly", 0, 0, 0) || create(context, "end", run_end, "readonly", 0, 0, 0);
}
