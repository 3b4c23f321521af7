/* The canvases on which traces are drawn, and the pointers on them. */

const CURSORS = {[CURSOR.ARROW]: "default", [CURSOR.LINK]: "pointer", [CURSOR.GRABBING]: "grabbing", [CURSOR.RESIZE]: "ew-resize",
	[CURSOR.MEASURE]: "crosshair"};
const MEMORY_LIMIT = 0xffff0000, TOO_LARGE = "too large for the memory of a page";
const DAMAGED = "damaged: it cannot be unpacked";
const FONT_FAMILY = "system-ui, sans-serif";
const DOUBLE_CLICK_MS = 400, LONG_PRESS_MS = 500, NEAR_PX = 12;
const SLICE_MS = 8, SEARCH_STEP = 10000;
const WHEEL_NOTCH_PX = 100;
const GROWTH_BYTES = 1 << 24; /* bytes by which the page's own heap may grow while a worker opens a trace */
const COPY_PERCENT = 30; /* share of the copy to a new worker in the time of an answer */
const MAX_IDLE_BYTES = 1 << 26; /* a worker with more memory is stopped after it has answered */

function create(tag, properties = {}, ...children) {
	const element = Object.assign(document.createElement(tag), properties);
	element.append(...children);
	return element;
}

function modifiers(event) {
	return (event.shiftKey ? MODIFIER.SHIFT : 0) | (event.ctrlKey || event.metaKey ? MODIFIER.CONTROL : 0) |
		(event.altKey ? MODIFIER.ALT : 0);
}

/* Reads a stream into the core's memory; returns [address, size].  If `size` is right, the bytes are never copied. */
async function readInto(core, stream, size) {
	let capacity = 0, at = 0, used = 0;
	const resize = wanted => {
		const moved = wanted <= MEMORY_LIMIT ? core.call.realloc(at, wanted) >>> 0 : 0;
		if (!moved)
			throw new Error(TOO_LARGE);
		[at, capacity] = [moved, wanted];
	};
	try {
		resize(Math.max(size, 65536));
		for (const reader = stream.getReader();;) {
			const {done, value} = await reader.read();
			if (done)
				return [at, used];
			if (used + value.length > capacity)
				resize(Math.max(capacity * 2, used + value.length));
			core.bytes.set(value, at + used);
			used += value.length;
		}
	} catch (error) {
		core.call.free(at);
		throw error;
	}
}

class Surface {
	/* Calls owner.changed(bits) on changes. */
	constructor(owner) {
		this.owner = owner;
		/* The overlay has its own canvas, because only the overlay changes when the pointer moves. */
		this.picture = create("canvas");
		this.picture.setAttribute("aria-hidden", "true");
		this.canvas = create("canvas", {tabIndex: 0});
		this.canvas.setAttribute("role", "application");
		this.below = this.picture.getContext("2d", {alpha: false});
		this.above = this.canvas.getContext("2d");
		this.stale = 0; /* parts to draw again: bits of CHANGED */
		this.element = create("div", {className: "surface blank"}, this.picture, this.canvas);
		this.pointers = new Map();
		this.loaded = new Map(); /* by viewer: its memory region, the worker with a copy of it, that worker's questions */
		this.free = []; /* unused regions that were copied from a worker's heap */
		this.opener = null; /* the worker that is opening a trace, or null */
		this.generation = 0; /* number of times that all traces were closed, or were to be replaced: identifies late answers */
		this.ratio = 1;
		this.listen();
	}

	async load() {
		const module = await compileCore();
		if (this.core)
			return;
		const core = await Core.create(module, (font, text) => this.painter.measure(this.below, font, text), () => {});
		if (this.core)
			return;
		this.painter = new Painter(core);
		this.compare = core.call.compare();
		this.core = core;
		this.resize();
	}

	/* Opens the trace in a stream of bytes, and shows it below the others or instead of the one at the place `wanted`.
	 * `size` is the number of bytes, if known; onProgress(events) is called during reading.  Returns false if it was
	 * cancelled, or if all traces were closed meanwhile.  Throws an error with a message for the user. */
	async open(stream, name, size, onProgress, wanted = NONE) {
		const generation = this.generation;
		if (this.closed)
			return false;
		await this.load();
		const {core} = this, place = Math.min(wanted, this.count), before = this.viewer(place);
		let helper;
		try {
			helper = this.opener = await Helper.start();
			if (generation !== this.generation)
				throw new Error("stopped");
			const loaded = helper ? await this.openElsewhere(helper, stream, name, size, onProgress, before) : await this.openHere(stream, name, size);
			if (generation !== this.generation)
				throw new Error("stopped");
			const status = core.call.show(loaded.viewer, true, place);
			if (status < 0)
				throw new Error(status === STATUS.ENOMEM ? TOO_LARGE : core.cstring(core.call.last_error()));
			this.freeViewer(before);
			this.loaded.set(loaded.viewer, loaded);
			this.element.classList.remove("blank");
		} catch (error) {
			helper?.stop();
			if (generation !== this.generation || error.message === "stopped")
				return false;
			if (error instanceof RangeError || error instanceof WebAssembly.RuntimeError)
				throw new Error(TOO_LARGE);
			if ([TypeError, SyntaxError, DOMException].some(type => error instanceof type))
				throw new Error(DAMAGED);
			throw error;
		} finally {
			if (this.opener === helper)
				this.opener = null;
		}
		this.publishChanges();
		this.continueSearch();
		return true;
	}

	/* Opens a trace like open(), but instead of all others.  They stay until it can be shown, and if it cannot be opened. */
	async openInstead(...what) {
		const {generation} = this, next = this.next = new Surface(this.owner);
		next.publishChanges = () => {}; /* the first call here reports the changes of both */
		try {
			if (!await next.open(...what) || generation !== this.generation)
				return false;
		} finally {
			next.resizes.disconnect();
			if (this.next === next)
				this.next = null;
		}
		this.clear();
		const {core, painter, compare, loaded, free} = next;
		Object.assign(this, {core, painter, compare, loaded, free});
		this.element.classList.remove("blank");
		this.resize();
		this.continueSearch();
		return true;
	}

	async openHere(stream, name, size) {
		const core = this.core, [at, bytes] = await readInto(core, await decompressed(stream), size);
		const viewer = core.withText(name, text => core.call.load(at, bytes, text)) >>> 0;
		if (viewer)
			return {viewer, at, pending: [null, null]};
		core.call.free(at);
		throw new Error(core.cstring(core.call.last_error()));
	}

	/* Opens a trace in a worker.  The worker's heap starts at an address that is unused here, so that its memory can then be
	 * copied here to the same addresses. */
	async openElsewhere(helper, stream, name, size, onProgress, before) {
		const {core} = this, start = this.findFreeRange(before);
		if (size > MEMORY_LIMIT - start || !(await helper.ask("begin", {module: await compileCore(), start})).began)
			throw new RangeError(TOO_LARGE);
		const sent = stream.base64 ? await helper.ask("decode", {text: stream.base64, size}) : await this.send(helper, stream, size);
		if ("wrong" in sent)
			throw sent.memory ? new RangeError(TOO_LARGE) : new Error(DAMAGED);
		const opened = await helper.ask("open", {name}, [], onProgress);
		if (opened.memory)
			throw new RangeError(TOO_LARGE);
		if ("wrong" in opened)
			throw new Error(opened.wrong);
		const loaded = {viewer: opened.viewer, helper, ready: Promise.resolve(helper), isReady: true, start, end: opened.end, pending: [null, null]};
		this.reserveRange(start, opened.end);
		await this.copyFrom(helper, start, opened.end);
		if (!core.call.adopt(start, opened.end))
			throw new RangeError(TOO_LARGE);
		return loaded;
	}

	/* Copies the worker's memory to the same addresses here.  While the page copies one piece, the worker prepares the
	 * next. */
	async copyFrom(helper, start, end) {
		const {core} = this, coming = [];
		const request = (from, buffer) => {
			if (from >= end)
				return;
			const piece = helper.ask("copy", {from, size: Math.min(PIECE, end - from), buffer}, buffer ? [buffer] : []);
			piece.catch(() => {}); /* if the worker is stopped, the previous piece throws */
			coming.push(piece);
		};
		request(start);
		request(start + PIECE);
		for (let from = start; from < end; from += PIECE) {
			const {buffer} = await coming.shift();
			if (core === this.core)
				core.bytes.set(new Uint8Array(buffer, 0, Math.min(PIECE, end - from)), from);
			request(from + 2 * PIECE, buffer);
		}
	}

	/* Sends the bytes of a trace to the worker as they arrive. */
	async send(helper, stream, size) {
		const reader = (await decompressed(stream)).getReader();
		let answer = {};
		for (let began = performance.now();;) {
			const {done, value} = await reader.read();
			if (done || "wrong" in answer)
				return answer;
			const bytes = value.byteLength === value.buffer.byteLength ? value : value.slice();
			answer = await helper.ask("append", {bytes, size}, [bytes.buffer]);
			if (performance.now() - began > SLICE_MS) { /* lets the page handle input */
				await new Promise(resolve => setTimeout(resolve));
				began = performance.now();
			}
		}
	}

	/* Returns the address for a worker's heap: an unused region of twice the size of the trace that was at this place
	 * before, or the end of all memory.  There, GROWTH_BYTES lets this core's own heap grow until the region is claimed. */
	findFreeRange(before) {
		const own = this.loaded.get(before), wanted = own ? (own.end - own.start) * 2 : Infinity;
		const index = this.free.findIndex(({start, end}) => end - start >= wanted);
		return index >= 0 ? this.free.splice(index, 1)[0].start : this.core.bytes.length + GROWTH_BYTES;
	}

	reserveRange(start, end) {
		const {memory} = this.core.call;
		if (this.free.some(range => start < range.end && end > range.start) || [...this.loaded.values()].some(loaded => loaded.end > start && loaded.start < end))
			throw new RangeError(TOO_LARGE);
		/* The first use of the heap claims all existing memory, which must not include the region for the worker's
		 * memory. */
		this.core.withText("", () => {});
		const usedBytes = memory.buffer.byteLength;
		if (end > usedBytes)
			memory.grow(Math.ceil((end - usedBytes) / WASM_PAGE));
	}

	/* Frees everything that belongs to a closed viewer. */
	freeViewer(viewer) {
		const loaded = this.loaded.get(viewer);
		this.loaded.delete(viewer);
		loaded?.helper?.stop();
		if (loaded?.at)
			this.core.call.free(loaded.at);
		else if (loaded)
			this.free.push({start: loaded.start, end: loaded.end});
	}

	/* Cancels the opening of a trace. */
	cancelOpening() {
		this.opener?.stop();
		this.next?.cancelOpening();
	}

	/* The same, and its opener is not told. */
	forgetOpening() {
		this.generation++;
		this.cancelOpening();
	}

	/* ---- Questions ---- */

	/* Starts to answer new questions of the viewers, and stops cancelled ones. */
	askQuestions() {
		for (const loaded of this.loaded.values())
			for (const ask of [ASK.TRACE, ASK.WHY]) {
				const state = this.core.call.question(loaded.viewer, ask);
				if (state === QUESTION.CALLED_OFF && loaded.pending[ask]) {
					loaded.pending[ask] = null;
					this.stopHelper(loaded);
					for (const other of [ASK.TRACE, ASK.WHY])
						if (loaded.pending[other])
							this.explain(loaded, other);
				}
				if (state === QUESTION.NEW) {
					this.core.call.weft_viewer_asked(loaded.viewer, ask);
					this.explain(loaded, ask);
				}
			}
	}

	/* Returns whether a question is still unanswered. */
	isAsking() {
		return [...this.loaded.keys()].some(viewer => [ASK.TRACE, ASK.WHY].some(ask => [QUESTION.NEW, QUESTION.ASKED].includes(this.core.call.question(viewer, ask))));
	}

	async explain(loaded, ask) {
		const {core} = this, {viewer} = loaded, promise = core.call.question_promise(viewer, ask) >>> 0, question = loaded.pending[ask] = {};
		const isWanted = () => core === this.core && this.loaded.get(viewer) === loaded && loaded.pending[ask] === question;
		let bytes;
		if (!loaded.isSeen && !document.hidden) /* the picture comes first: both together would need two CPUs */
			await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
		loaded.isSeen = true;
		if (!isWanted())
			return;
		let helper;
		try {
			const copied = loaded.isReady ? 0 : COPY_PERCENT;
			const report = done => isWanted() && this.act("weft_viewer_progress", viewer, ask, copied + (100 - copied) * done / 100);
			helper = loaded.start && await this.helperOf(loaded);
			if (helper)
				({bytes} = await helper.ask("explain", {viewer, ask, promise}, [], report));
			else
				await new Promise(resolve => setTimeout(resolve));
		} catch {
			/* the worker was stopped because the answer is no longer wanted, or it failed; there is no answer */
			if (helper && helper === loaded.helper)
				this.stopHelper(loaded);
		}
		if (!isWanted())
			return;
		loaded.pending[ask] = null;
		let at = 0;
		if (bytes?.length && (at = core.call.malloc(bytes.length) >>> 0))
			core.bytes.set(bytes, at);
		else if (!loaded.start)
			at = core.call.explain(viewer, ask, promise);
		this.act("answer", viewer, ask, at);
		if (loaded.helper && !loaded.pending.some(Boolean) && loaded.end - loaded.start > MAX_IDLE_BYTES)
			this.stopHelper(loaded);
	}

	stopHelper(loaded) {
		loaded.helper?.stop();
		Object.assign(loaded, {helper: null, ready: null, isReady: false});
	}

	/* Returns the worker that opened a trace, or a new one with a copy of its memory; null if the page cannot have one.  A question
	 * that comes during the copy must wait for all of it. */
	helperOf(loaded) {
		if (!loaded.ready) {
			const copy = loaded.ready = Promise.resolve().then(() => this.copyToHelper(loaded, () => loaded.ready === copy));
		}
		return loaded.ready;
	}

	async copyToHelper(loaded, isWanted) {
		const {core} = this, {viewer, start, end} = loaded, helper = await Helper.start();
		if (!isWanted() || this.loaded.get(viewer) !== loaded) {
			helper?.stop();
			throw new Error("stopped");
		}
		loaded.helper = helper;
		if (!helper || !(await helper.ask("begin", {module: await compileCore(), start: end})).began) {
			this.stopHelper(loaded);
			return null;
		}
		for (let from = start; from < end; from += PIECE) {
			const bytes = core.bytes.slice(from, Math.min(from + PIECE, end));
			await helper.ask("write", {from, bytes}, [bytes.buffer]);
			for (const ask of [ASK.TRACE, ASK.WHY])
				if (loaded.pending[ask])
					this.act("weft_viewer_progress", viewer, ask, COPY_PERCENT * (from - start) / (end - start));
		}
		loaded.isReady = true;
		return helper;
	}

	/* Closes all traces, and frees their memory. */
	clear() {
		clearTimeout(this.searching);
		this.forgetOpening();
		for (const {helper} of this.loaded.values())
			helper?.stop();
		this.loaded.clear();
		this.free = [];
		this.core = this.painter = null;
		this.element.classList.add("blank");
	}

	close() {
		this.resizes.disconnect();
		cancelAnimationFrame(this.frame);
		this.clear();
		this.closed = true;
	}

	get count() {
		return this.core ? this.core.call.viewers() : 0;
	}

	/* Returns the viewer at a place, counted from the top; 0 if there is none. */
	viewer(place) {
		return this.core ? this.core.call.viewer(place) >>> 0 : 0;
	}

	get active() {
		return this.viewer(this.core?.call.active());
	}

	/* Returns whether a viewer is still shown. */
	has(viewer) {
		for (let i = 0; i < this.count; i++)
			if (this.viewer(i) === viewer)
				return true;
		return false;
	}

	/* Calls a function of the core, then draws and reports its changes. */
	act(name, ...values) {
		const result = this.core.call[name](...values);
		this.publishChanges();
		return result;
	}

	/* Calls a function with the struct weft_compare as first parameter. */
	actAll(name, ...values) {
		return this.core ? this.act(name, this.compare, ...values) : 0;
	}

	/* Calls a function that returns a text. */
	ask(name, ...values) {
		return this.core.cstring(this.act(name, ...values));
	}

	publishChanges() {
		const changes = this.core.call.weft_compare_take_changes(this.compare);
		if (changes & (CHANGED.PICTURE | CHANGED.OVERLAY))
			this.drawSoon(changes);
		if (this.count)
			this.canvas.style.cursor = CURSORS[this.core.call.weft_viewer_cursor(this.active)];
		if (changes)
			this.owner.changed(changes);
	}

	/* ---- Drawing ---- */

	resize() {
		const {clientWidth: width, clientHeight: height} = this.element;
		if (!width || !height)
			return;
		this.ratio = globalThis.devicePixelRatio || 1;
		for (const canvas of [this.picture, this.canvas])
			Object.assign(canvas, {width: Math.round(width * this.ratio), height: Math.round(height * this.ratio)});
		this.actAll("weft_compare_resize", width, height, 1);
		this.draw(CHANGED.PICTURE);
	}

	drawSoon(changes = CHANGED.PICTURE) {
		this.stale |= changes;
		this.frame ??= requestAnimationFrame(() => this.draw());
	}

	draw(changes = 0) {
		changes |= this.stale;
		cancelAnimationFrame(this.frame);
		this.frame = null;
		this.stale = 0;
		if (!this.core)
			return;
		const panes = this.core.call.draw();
		if (changes & CHANGED.PICTURE)
			this.paint(this.below, this.ratio, panes, true);
		this.paint(this.above, this.ratio, panes, false);
	}

	/* Draws the panes that are pictures, on their background, or all other panes.  The core fills the pixels of pictures, if
	 * there is memory for them, because calls of the canvas would take far longer. */
	paint(context, ratio, panes, pictures) {
		const core = this.core, {width, height} = context.canvas;
		const image = pictures ? core.call.image(width, height, ratio, this.owner.theme) >>> 0 : 0;
		context.clearRect(0, 0, width, height);
		if (image) {
			const pixels = new Uint8ClampedArray(core.bytes.buffer, image, width * height * 4);
			context.putImageData(new ImageData(pixels, width, height), 0, 0);
		} else if (pictures) {
			context.fillStyle = this.painter.paint(this.owner.theme, PAINT.BACKGROUND, 255);
			context.fillRect(0, 0, width, height);
		}
		for (let i = 0; i < panes; i++) {
			if ((i % PANE.COUNT <= PANE.GUTTER) !== pictures)
				continue;
			const [x, y, paneWidth, paneHeight, scale, prims, count, texts, inImage] = new Float64Array(core.bytes.buffer, core.call.pane(i) >>> 0, 9);
			context.save();
			context.scale(ratio, ratio);
			context.beginPath();
			context.rect(x, y, paneWidth, paneHeight);
			context.clip();
			context.translate(x, y);
			context.scale(scale, scale);
			this.painter.draw(context, this.owner.theme, prims, image ? inImage : 0, count, texts);
			context.restore();
		}
	}

	/* Returns a canvas with the picture and the overlay, for saving as an image or, with more pixels, for printing. */
	renderWhole(ratio = this.ratio) {
		this.draw();
		const {clientWidth, clientHeight} = this.canvas, panes = this.core.call.draw();
		const [both, above] = [true, false].map(pictures => {
			const canvas = create("canvas", {width: clientWidth * ratio, height: clientHeight * ratio});
			this.paint(canvas.getContext("2d"), ratio, panes, pictures);
			return canvas;
		});
		both.getContext("2d").drawImage(above, 0, 0);
		return both;
	}

	/* ---- Searching ---- */

	/* Starts a search, which continues in steps.  Returns an error message, or "". */
	search(text) {
		const wrong = this.core.withText(text, at => this.ask("search", at));
		this.continueSearch();
		return wrong;
	}

	continueSearch() {
		clearTimeout(this.searching);
		const began = performance.now();
		let more = true;
		while (more && performance.now() - began < SLICE_MS)
			more = Boolean(this.core.call.weft_compare_search_step(this.compare, SEARCH_STEP));
		this.publishChanges();
		if (more)
			this.searching = setTimeout(() => this.continueSearch());
	}

	/* ---- Pointers ---- */

	at(event) {
		const box = this.canvas.getBoundingClientRect();
		return [event.clientX - box.left, event.clientY - box.top];
	}

	listen() {
		const on = (type, handle) => this.canvas.addEventListener(type, event => this.count && handle(event), {passive: false});
		on("pointerdown", event => this.pressed(event));
		on("pointermove", event => this.moved(event));
		on("pointerup", event => this.released(event));
		on("pointercancel", event => {
			this.pointers.delete(event.pointerId);
			this.actAll("weft_compare_leave");
		});
		on("pointerleave", event => event.pointerType === "mouse" && !this.pointers.size && this.actAll("weft_compare_leave"));
		on("wheel", event => this.wheeled(event));
		on("contextmenu", event => event.preventDefault());
		on("dragstart", event => event.preventDefault());
		on("touchend", event => event.cancelable && event.preventDefault()); /* otherwise the focus is lost, and with it the menu that a long press has opened */
		this.resizes = new ResizeObserver(() => this.resize());
		this.resizes.observe(this.element);
	}

	pressed(event) {
		event.preventDefault();
		this.canvas.focus({preventScroll: true});
		this.canvas.setPointerCapture(event.pointerId);
		const [x, y] = this.at(event);
		this.pointers.set(event.pointerId, [x, y]);
		this.held = null;
		if (this.pointers.size === 2) {
			this.actAll("weft_compare_leave"); /* the first pointer is now part of a pinch, neither a drag nor a click */
			return;
		}
		const last = this.lastPress;
		const isDoubleClick = last && event.timeStamp - last.time < DOUBLE_CLICK_MS && last.clicks === 1 &&
			Math.hypot(x - last.x, y - last.y) < NEAR_PX;
		this.lastPress = {time: event.timeStamp, x, y, clicks: isDoubleClick ? 2 : 1};
		if (event.pointerType === "touch") {
			const held = this.held = {};
			/* If the page is late, an earlier motion comes with the next frame. */
			setTimeout(() => requestAnimationFrame(() => {
				if (this.held !== held)
					return;
				this.actAll("weft_compare_leave");
				this.actAll("weft_compare_press", x, y, BUTTON.SECONDARY, 0, 1);
			}), LONG_PRESS_MS);
		}
		this.actAll("weft_compare_press", x, y, event.button, modifiers(event), this.lastPress.clicks);
	}

	moved(event) {
		const [x, y] = this.at(event), before = this.pointers.get(event.pointerId);
		if (before && this.pointers.size === 2) {
			const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
			const spread = (a, b) => Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 1);
			const middle = [(x + other[0]) / 2, (y + other[1]) / 2];
			this.pointers.set(event.pointerId, [x, y]);
			this.actAll("weft_compare_pinch", ...middle, spread([x, y], other) / spread(before, other), (x - before[0]) / 2,
				(y - before[1]) / 2);
			return;
		}
		if (before)
			this.pointers.set(event.pointerId, [x, y]);
		if (this.lastPress && Math.hypot(x - this.lastPress.x, y - this.lastPress.y) > NEAR_PX)
			this.held = null;
		this.actAll("weft_compare_motion", x, y);
	}

	released(event) {
		this.held = null;
		if (this.pointers.delete(event.pointerId))
			this.actAll("weft_compare_release", ...this.at(event));
	}

	wheeled(event) {
		event.preventDefault();
		const notch = [WHEEL_NOTCH_PX, 3, 1][event.deltaMode] ?? WHEEL_NOTCH_PX;
		const [x, y] = this.at(event);
		/* Browsers report a pinch on a touchpad as a wheel with the control key. */
		if (event.ctrlKey && event.deltaMode === 0 && Math.abs(event.deltaY) < WHEEL_NOTCH_PX / 2)
			this.actAll("weft_compare_pinch", x, y, Math.exp(-event.deltaY / WHEEL_NOTCH_PX), 0, 0);
		else
			this.actAll("weft_compare_wheel", x, y, event.deltaX / notch, event.deltaY / notch, modifiers(event));
	}
}
