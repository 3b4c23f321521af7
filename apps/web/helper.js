/* A worker with its own instance of the core.  Long computations run there, so that the page stays responsive.
 *
 * The worker's source is text of this script, so that no file has to be loaded.  If the page's policy forbids such workers, the page
 * computes everything itself. */

const PIECE = 1 << 20; /* bytes that are copied at once */
const WASM_PAGE = 1 << 16;

/* The code of the worker.  Each message to it names an action, and gets one message as its answer.  Progress messages, which
 * have `done`, come in between. */
function work() {
	let core, at = 0, capacity = 0, used = 0, reportedAt = 0;
	const resize = wanted => {
		const moved = core.call.realloc(at, wanted) >>> 0;
		if (!moved)
			throw new RangeError("out of memory");
		[at, capacity] = [moved, wanted];
	};
	const actions = {
		/* Starts the core; its heap starts at `start`. */
		async begin({module, start}) {
			core = await Core.create(module, () => 0, done => {
				if (Date.now() - reportedAt > 100)
					postMessage({done, at: reportedAt = Date.now()});
			});
			return {began: Boolean(core.call.begin_at(start))};
		},
		/* Appends bytes of a trace.  `size`: the total number, 0 if unknown. */
		append({bytes, size}) {
			if (used + bytes.length > capacity)
				resize(Math.max(capacity * 2, used + bytes.length, size));
			core.bytes.set(bytes, at + used);
			used += bytes.length;
			return {};
		},
		/* Appends a whole trace encoded in base64. */
		async decode({text, size}) {
			for (const reader = (await decompressed(streamOfBase64(text))).getReader();;) {
				const {done, value} = await reader.read();
				if (done)
					return {};
				actions.append({bytes: value, size});
			}
		},
		open({name}) {
			const viewer = core.withText(name, text => core.call.load(at, used, text)) >>> 0;
			return viewer ? {viewer, end: core.bytes.length} : {wrong: core.cstring(core.call.last_error())};
		},
		/* Returns a piece of the memory, in `buffer` if given, because a new buffer takes the same time as the copy. */
		copy({from, size, buffer = new ArrayBuffer(PIECE)}) {
			new Uint8Array(buffer).set(core.bytes.subarray(from, from + size));
			return {buffer, transfer: [buffer]};
		},
		write({from, bytes}) {
			core.bytes.set(bytes, from);
			return {};
		},
		explain({viewer, ask, promise}) {
			const parcel = core.call.explain(viewer, ask, promise) >>> 0;
			const bytes = core.bytes.slice(parcel, parcel ? parcel + core.call.parcel_size() : 0);
			core.call.free(parcel);
			return {bytes, transfer: [bytes.buffer]};
		},
	};
	let before = Promise.resolve();
	onmessage = ({data}) => before = before.then(() => actions[data.action](data)).then(
		({transfer = [], ...answer}) => postMessage(answer, transfer),
		error => postMessage({wrong: error.message, memory: error instanceof RangeError || error instanceof WebAssembly.RuntimeError}));
	postMessage({});
}

const WORKER = `"use strict";
const BASE64_PIECE = ${BASE64_PIECE}, PIECE = ${PIECE};
${[fromBase64, streamOfBase64, gunzip, decompressed, Core].join("\n")}
(${work})();`;

class Helper {
	/* Starts a worker for the next start(), because starting one takes the time of loading a document. */
	static prepare() {
		Helper.prepared ??= Helper.create();
	}

	/* Returns a worker that is ready; null if the page cannot have one. */
	static async start() {
		const helper = Helper.prepared ?? Helper.create();
		Helper.prepared = null;
		return helper;
	}

	static async create() {
		const url = URL.createObjectURL(new Blob([WORKER], {type: "text/javascript"}));
		const helper = new Helper();
		try {
			helper.waiting = [];
			helper.worker = new Worker(url);
			helper.worker.onmessage = ({data}) => "done" in data ? helper.report(data.done) : helper.waiting.shift()?.resolve(data);
			helper.worker.onerror = event => {
				event.preventDefault();
				helper.stop();
			};
			await helper.answer();
			return helper;
		} catch {
			return null;
		} finally {
			URL.revokeObjectURL(url);
		}
	}

	answer(onprogress) {
		return new Promise((resolve, reject) => this.waiting.push({resolve, reject, onprogress, ahead: this.waiting.length}));
	}

	/* Sends an action, and returns its answer.  Answers come in the order of the actions.  onprogress(done) is called meanwhile; the
	 * percentage of an action that waits for others includes theirs. */
	ask(action, values = {}, transfer = [], onprogress = null) {
		if (this.stopped)
			return Promise.reject(new Error("stopped"));
		this.worker.postMessage({action, ...values}, transfer);
		return this.answer(onprogress);
	}

	report(done) {
		this.waiting.forEach(({onprogress, ahead}, at) => onprogress?.(((ahead - at) * 100 + done) / (ahead + 1)));
	}

	/* Ends the worker at once; pending answers are rejected. */
	stop() {
		this.stopped = true;
		this.worker.terminate();
		this.waiting.splice(0).forEach(({reject}) => reject(new Error("stopped")));
	}
}
