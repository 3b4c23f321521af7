/* note.c: the events of the traced Lwt, while something records.  SPDX-License-Identifier: ISC */
#include "promise/core.h"

weft_id weft__record_created(struct weft_record_site *site, enum weft_kind kind)
{
	return weft_create(weft__world.running, kind, site);
}

void weft__record_switch(void)
{
	weft_id current = weft__world.current;
	if (weft__world.running != current) {
		weft__world.running = current;
		weft_run(current);
	}
}

void weft__record_read(weft_id input)
{
	weft_id current = weft__world.current;
	weft__world.running = current;
	if (input != current)
		weft_read(current, input);
}

void weft__record_signal(weft_id from)
{
	weft__world.running = weft__world.current;
	weft_signal(from, weft__world.current);
}

void weft__record_end(weft_id p, const struct weft_failure *failure)
{
	if (!failure)
		weft_resolve(weft__world.running, p);
	else
		weft_fail(weft__world.running, p, failure->message);
}

void weft__record_become(weft_id p, weft_id into)
{
	if (p != into)
		weft_become(p, into);
}

void weft__record_await(weft_id p, weft_id input)
{
	weft_await(p, input);
}

void weft__record_label(weft_id p, const char *label)
{
	weft_label(p, label);
}
