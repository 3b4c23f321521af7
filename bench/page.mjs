// page.mjs DRIVER PAGE.html...: how long a page lets one wait, in Chromium; a line of JSON for each.  SPDX-License-Identifier: ISC
//
// first_ms: from the address to the first frame that shows the trace; of these dom_ms until the document was parsed, and open_ms until what a worker
// made of it was there, and draw_ms.  pans: at each zoom, while it is panned and zoomed, the time of a frame's list and drawing, median and 99th percentile,
// frames a second, and cpu_ms: of a processor's time what the page's OS thread had for a frame, which tells more than a clock where others are busy.  away_ms: the longest search step.  wasm, renderer: bytes at the peak.
import {readFileSync} from "node:fs";
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";

const FRAMES = 90, ZOOMS = [1, 1.2, 2, 20, 200, 2000];
const [driver, ...pages] = process.argv.slice(2);
const {chromium} = await import(pathToFileURL(join(resolve(driver), "node_modules/playwright-core/index.mjs")));

async function pan(page, zoom, renderer) {
	await page.evaluate(async factor => {
		const {stage} = weft, to = Number(stage.core.call.end_ns(stage.surface.active)), span = to / factor;
		stage.go(`t=${Math.round((to - span) / 2)}ns..${Math.round((to + span) / 2)}ns`);
		for (let i = 0; i < 3; i++)
			await new Promise(requestAnimationFrame);
	}, zoom);
	const began = processorMs(renderer);
	const pan = await page.evaluate(async ([frames, factor]) => {
		const {surface} = weft.stage, canvas = surface.canvas;
		const drawing = [], intervals = [], draw = Object.getPrototypeOf(surface).draw;
		surface.draw = function() {
			const began = performance.now();
			draw.call(this);
			drawing.push(performance.now() - began);
		};
		let last = 0;
		for (let i = 0; i < frames; i++) {
			const now = await new Promise(requestAnimationFrame);
			if (last && i > 10)
				intervals.push(now - last);
			last = now;
			const wheel = i % 3 ? {deltaX: i % 30 < 15 ? 40 : -40} : {deltaY: i % 2 ? 20 : -20};
			canvas.dispatchEvent(new WheelEvent("wheel", {clientX: 600, clientY: 350, bubbles: true, cancelable: true, ...wheel}));
		}
		delete surface.draw;
		drawing.sort((a, b) => a - b);
		return {zoom: factor, drawn: drawing.length, median_ms: drawing[drawing.length >> 1], late_ms: drawing[Math.floor(drawing.length * 0.99)],
			hz: 1000 * intervals.length / intervals.reduce((a, b) => a + b, 0)};
	}, [FRAMES, zoom]);
	return {...pan, cpu_ms: (processorMs(renderer) - began) / pan.drawn};
}

// What the first OS thread of a process had of a processor.
function processorMs(id) {
	return Number(readFileSync(`/proc/${id}/task/${id}/schedstat`, "ascii").split(" ")[0]) / 1e6;
}

function peakOf(id) {
	try {
		return Number(readFileSync(`/proc/${id}/status`, "ascii").match(/VmHWM:\s+(\d+)/)[1]) * 1024;
	} catch {
		return 0;
	}
}

// The process that runs the page: of all that could, the one with the most memory.
async function rendererOf(browser) {
	const session = await browser.newBrowserCDPSession();
	const {processInfo} = await session.send("SystemInfo.getProcessInfo");
	return processInfo.filter(process => process.type === "renderer").map(({id}) => id).sort((a, b) => peakOf(b) - peakOf(a))[0];
}

async function measure(path) {
	const browser = await chromium.launch({executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"]});
	const page = await browser.newPage({viewport: {width: 1280, height: 720}});
	page.setDefaultTimeout(300000);
	page.on("pageerror", error => console.error(error.stack));
	await page.goto(pathToFileURL(resolve(path)).href);
	await page.waitForSelector("[data-ready]", {state: "attached"});
	const first = await page.evaluate(() => new Promise(done => {
		const ready = performance.now();
		requestAnimationFrame(() => setTimeout(() => {
			const {domInteractive: dom} = performance.getEntriesByType("navigation")[0], now = performance.now();
			done({first_ms: now, dom_ms: dom, open_ms: ready - dom, draw_ms: now - ready, wasm: weft.stage.core.call.memory.buffer.byteLength});
		}));
	}));
	const renderer = await rendererOf(browser);
	first.renderer_opened = peakOf(renderer);
	first.pans = [];
	for (const zoom of ZOOMS)
		first.pans.push(await pan(page, zoom, renderer));
	first.renderer = peakOf(renderer);
	await browser.close();
	return first;
}

for (const path of pages)
	console.log(JSON.stringify(await measure(path)));
