/* Follows traces of weft serve, which may grow: asks for each of them again and again, with the ETag of the version that is shown, and
 * shows what is new. */

const LOOK_MS = 50, LOOK_AT_ENDED_MS = 1000;
const REST = 3; /* the pause between two looks is at least this many times as long as a look takes */

class Follower {
	/* traces: [{url, name}] */
	constructor(stage, traces) {
		this.stage = stage;
		this.traces = traces;
		this.held = false;
		stage.follower = this;
	}

	/* Looks at all traces once, and then again and again until stop(). */
	async begin() {
		for (const trace of this.traces)
			await this.look(trace);
		this.tell();
		this.wait(0);
	}

	stop() {
		this.stopped = true;
		clearTimeout(this.timer);
	}

	/* Pauses following, or resumes it. */
	hold(held) {
		this.held = held;
		this.tell();
		if (!held)
			this.again();
	}

	wait(tookMs) {
		const pause = this.traces.some(trace => trace.isRecorded) ? LOOK_MS : LOOK_AT_ENDED_MS;
		this.timer = setTimeout(() => this.again(), Math.max(pause, REST * tookMs));
	}

	/* Looks at all traces, and shows what has changed; with `anyway` also while following is paused. */
	async again(anyway = false) {
		clearTimeout(this.timer);
		if (this.isLooking)
			this.isAsked ||= anyway;
		if (this.isLooking || this.stopped)
			return;
		const began = performance.now();
		this.isLooking = true;
		this.isAsked = false;
		/* the picture must not change under a pointer that is pressed */
		if (!this.stage.surface.pointers.size)
			for (const trace of this.traces)
				if (!this.stopped)
					await this.look(trace, anyway);
		this.isLooking = false;
		if (this.stopped)
			return;
		this.tell();
		if (this.isAsked)
			this.again(true);
		else
			this.wait(performance.now() - began);
	}

	async look(trace, anyway = false) {
		const still = this.held && !anyway;
		try {
			/* who stands still and asks for more wants all that there is: of a large trace that is recorded, what is
			 * followed is its newest events */
			const response = await fetch(trace.url + (this.held && anyway ? "?whole=1" : ""), {
				method: still ? "HEAD" : "GET", headers: trace.etag ? {"If-None-Match": trace.etag} : {}});
			if (!response.ok && response.status !== 304)
				throw new Error((await response.text()).trim() || response.statusText);
			trace.isRecorded = response.headers.get("Weft-Recorded") === "yes";
			trace.isNew = response.status === 200;
			trace.wrong = "";
			if (!trace.isNew || still || this.stopped)
				return;
			await this.show(trace, response.body, Number(response.headers.get("Content-Length")));
			trace.etag = response.headers.get("ETag");
			trace.isNew = false;
		} catch (error) {
			trace.wrong = error instanceof TypeError ? "weft serve does not answer any more" : error.message;
			trace.isRecorded = false;
		}
	}

	async show(trace, source, size) {
		const place = this.stage.names.length;
		if (trace.place !== undefined)
			await this.stage.renew(trace.place, source, size);
		else if (await this.stage.add(source, trace.name, size))
			trace.place = place;
	}

	tell() {
		const wrong = this.traces.find(trace => trace.wrong)?.wrong;
		const isRecorded = this.traces.some(trace => trace.isRecorded), isNew = this.traces.some(trace => trace.isNew);
		const {live} = this.stage;
		live.hidden = false;
		live.textContent = wrong ? wrong : this.held ? isNew ? "Paused; there are new events" : "Paused" : isRecorded ? "Live" : "Ended";
		live.title = this.held ? "Follow the program" : "Pause";
		live.dataset.state = wrong ? "wrong" : this.held ? "held" : isRecorded ? "live" : "ended";
		live.setAttribute("aria-pressed", String(!this.held));
	}
}
