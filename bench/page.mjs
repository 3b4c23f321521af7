// page.mjs DRIVER PAGE.html...: latencies of a page in Chromium; prints a line of JSON for each page.  SPDX-License-Identifier: ISC
//
// first_ms: time from opening the address to the first frame with the trace: dom_ms until the document is parsed, open_ms until the worker's result
// is there, and draw_ms.  pans: for each zoom, while panning and zooming, median and 99th percentile of a frame's draw list and drawing, frames per
// second, and cpu_ms: CPU time of the page's OS thread for a frame, which other busy programs do not affect.  wasm, renderer: peak bytes.
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

// Returns the CPU time of a process's first OS thread.
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

// Returns the process that runs the page: the renderer with the most memory.
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
