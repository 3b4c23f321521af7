/* The functions for web pages.
 *
 *   weft.show(element, traces)   traces: one or a list of URL, Blob, or {source, name}.  Returns
 *                                   opened     a promise of the number of traces that could be opened
 *                                   go(place)  shows a place, such as "t=1ms..2ms&find=ARP", once the traces are open; returns a
 *                                              promise of "" or of an error message
 *                                   close()    empties the element
 *   weft.page()                  makes the page of weft html from the traces in the document */

const sheet = new CSSStyleSheet();
const styled = unpack(STYLE).text().then(text => sheet.replaceSync(text));
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

async function download(url) {
	const response = await fetch(url);
	if (!response.ok)
		throw new Error(`${response.status} ${response.statusText}`);
	return response.body;
}

function asTrace(trace) {
	if (typeof trace === "string")
		return {source: () => download(trace), name: trace.split("/").pop()};
	if (trace instanceof Blob)
		return {source: () => trace.stream(), name: trace.name ?? "trace"};
	const inner = asTrace(trace.source);
	return {...inner, ...trace, source: inner.source};
}

async function openAll(stage, traces) {
	let opened = 0;
	for (const trace of traces) {
		const stream = trace.source();
		trace.source = null; /* so that the memory of its text can be freed */
		opened += await stage.add(stream, trace.name, trace.size);
	}
	return opened;
}

const shown = new WeakMap(); /* the stage in each element */

function show(element, traces) {
	shown.get(element)?.close();
	const stage = new Stage(element);
	shown.set(element, stage);
	const opened = styled.then(() => openAll(stage, [traces].flat().map(asTrace)));
	return {opened, go: place => opened.then(() => stage.go(place)), close: () => stage.close()};
}

/* Keeps the address of the page equal to the place that is shown.  An action of the user adds an entry to the history, so that
 * the back button undoes it; a continuation, such as the next notch of a wheel, replaces that entry.  The address is written
 * when nothing has changed for a moment, because writing takes a tenth of a frame. */
function followAddress(stage) {
	const opened = stage.surface.ask("place"); /* the place of an address without one */
	let timer = 0, moved = false, going = false, entries = []; /* entries not written yet: place, and whether new */
	const write = () => {
		clearTimeout(timer);
		timer = 0;
		for (const {place, adds} of entries)
			if (place !== location.hash)
				history[adds ? "pushState" : "replaceState"](null, "", place);
		entries = [];
	};
	const go = () => {
		clearTimeout(timer);
		timer = 0;
		entries = [];
		going = true;
		const wrong = stage.go(location.hash.length > 1 ? location.hash : opened);
		going = false;
		moved = false;
		if (wrong)
			stage.status.textContent = wrong;
	};
	stage.onchange = changes => {
		if (stage.renewing)
			changes &= CHANGED.PLACE;
		if (going)
			return;
		moved ||= Boolean(changes & CHANGED.MOVED);
		if (!(changes & (CHANGED.PLACE | CHANGED.SELECTION | CHANGED.SEARCH | CHANGED.SETTING)))
			return;
		if (moved || !entries.length)
			entries.push({adds: moved});
		moved = false;
		entries.at(-1).place = `#${stage.surface.ask("place")}`;
		if (timer && stage.renewing)
			return; /* updates of a followed program must not delay the writing */
		clearTimeout(timer);
		timer = setTimeout(write, 250);
	};
	stage.walkHistory = steps => {
		if (timer)
			write();
		history.go(steps);
	};
	addEventListener("popstate", go);
	if (location.hash.length > 1)
		go();
}

/* Connects the page with its first open trace. */
function begin(stage) {
	followAddress(stage);
	if (window.top === window) // in a frame, the page around it keeps the keyboard focus
		stage.surface.canvas.focus({preventScroll: true});
}

async function page() {
	compileCore(); /* compiles while the browser still loads the traces */
	Helper.prepare();
	await styled;
	if (document.readyState === "loading")
		await new Promise(resolve => document.addEventListener("DOMContentLoaded", resolve));
	const traces = [...document.querySelectorAll(".trace")].map(element => {
		const {name = element.textContent, size = "0", live} = element.dataset;
		const text = element.tagName === "SCRIPT" ? element.textContent : "";
		const source = element.tagName === "SCRIPT" ? () => streamOfBase64(text) : () => download(element.href);
		element.remove(); /* frees the memory of its text */
		return {name, source, size: Number(size), url: element.href, isLive: live !== undefined};
	});
	const element = create("main");
	document.body.replaceChildren(element);
	const stage = new Stage(element);
	globalThis.weft.stage = stage;
	if (traces.some(trace => trace.isLive))
		await new Follower(stage, traces).begin();
	else if (traces.length)
		await openAll(stage, traces);
	else
		stage.showStart(() => begin(stage));
	if (stage.surface.count)
		begin(stage);
	element.dataset.ready = "";
}

globalThis.weft = {show, page};
if (document.currentScript?.dataset.page !== undefined)
	page();
