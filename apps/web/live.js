/* Follows traces of weft serve, which may grow: requests each of them repeatedly, with the ETag of the version shown, and shows
 * new versions. */

const REFRESH_MS = 50, REFRESH_ENDED_MS = 1000;
const REST_FACTOR = 3; /* the pause between two refreshes is at least this many times the duration of a refresh */

class Follower {
	/* traces: [{url, name}] */
	constructor(stage, traces) {
		this.stage = stage;
		this.traces = traces;
		this.held = false;
		stage.follower = this;
	}

	/* Refreshes all traces once, and then repeatedly until stop(). */
	async begin() {
		for (const trace of this.traces)
			await this.refresh(trace);
		this.showStatus();
		this.schedule(0);
	}

	stop() {
		this.stopped = true;
		clearTimeout(this.timer);
	}

	/* Pauses following, or resumes it. */
	hold(held) {
		this.held = held;
		this.showStatus();
		if (!held)
			this.refreshAll();
	}

	schedule(tookMs) {
		const pause = this.traces.some(trace => trace.isRecorded) ? REFRESH_MS : REFRESH_ENDED_MS;
		this.timer = setTimeout(() => this.refreshAll(), Math.max(pause, REST_FACTOR * tookMs));
	}

	/* Refreshes all traces, and shows changes; with `anyway` also while paused. */
	async refreshAll(anyway = false) {
		clearTimeout(this.timer);
		if (this.isRefreshing)
			this.isRefreshWanted ||= anyway;
		if (this.isRefreshing || this.stopped)
			return;
		const began = performance.now();
		this.isRefreshing = true;
		this.isRefreshWanted = false;
		/* the picture must not change under a pressed pointer */
		if (!this.stage.surface.pointers.size)
			for (const trace of this.traces)
				if (!this.stopped)
					await this.refresh(trace, anyway);
		this.isRefreshing = false;
		if (this.stopped)
			return;
		this.showStatus();
		if (this.isRefreshWanted)
			this.refreshAll(true);
		else
			this.schedule(performance.now() - began);
	}

	async refresh(trace, anyway = false) {
		const still = this.held && !anyway;
		try {
			/* a user that has paused and asks for more gets the whole trace; otherwise only the newest events of a
			 * large trace are followed */
			const response = await fetch(trace.url + (this.held && anyway ? "?whole=1" : ""), {
				method: still ? "HEAD" : "GET", headers: trace.etag ? {"If-None-Match": trace.etag} : {}});
			if (!response.ok && response.status !== 304)
				throw new Error((await response.text()).trim() || response.statusText);
			trace.isRecorded = response.headers.get("Weft-Trace-Is-Recorded") === "yes";
			trace.isNew = response.status === 200;
			trace.wrong = "";
			if (!trace.isNew || still || this.stopped)
				return;
			if (!await this.show(trace, response.body, Number(response.headers.get("Content-Length"))))
				return;
			trace.etag = response.headers.get("ETag");
			trace.isNew = false;
		} catch (error) {
			trace.wrong = error instanceof TypeError ? "weft serve no longer answers" : error.message;
			trace.isRecorded = false;
		}
	}

	/* Returns false if another opening took the place of this one. */
	async show(trace, source, size) {
		const place = this.stage.names.length;
		if (trace.place !== undefined)
			return this.stage.renew(trace.place, source, size);
		if (await this.stage.add(source, trace.name, size))
			trace.place = place;
		return true;
	}

	showStatus() {
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
