// Common parts of the tests of the page: the programs under test, a working folder, Chromium, and user actions in it.
// SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {execFileSync, spawn, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {createInterface} from "node:readline";
import {inflateSync} from "node:zlib";
import {pathToFileURL} from "node:url";

const PATIENCE_MS = Number(process.env.WEFT_TEST_PATIENCE ?? 60) * 1000;
const SLOWER = Number(process.env.WEFT_TEST_SLOWER ?? 1); // factor by which Chromium slows the CPU down, as on a slower machine

export const [weft, generate, arp, frame, httpServer, slow, driver] = process.argv.slice(2).map(path => path && resolve(path));
const {chromium} = await import(pathToFileURL(join(driver, "node_modules/playwright-core/index.mjs")));
export const work = mkdtempSync(join(tmpdir(), "weft-page-"));
export const at = name => join(work, name);
export const file = name => pathToFileURL(at(name)).href;
export const run = (command, ...args) => execFileSync(command, args, {cwd: work, stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 28});

export function record(mode) {
	const trace = at(`arp-${mode}`);
	spawnSync(arp, [mode], {env: {...process.env, WEFT_TRACE: trace}});
	return trace;
}

// ---- background programs ----

const children = new Set();

// Starts a program that prints its address in its first line.
export async function start(command, args, env = {}) {
	const child = spawn(command, args, {cwd: work, stdio: ["ignore", "pipe", "inherit"], env: {...process.env, ...env}});
	children.add(child);
	child.ended = new Promise(resolved => child.on("exit", (code, signal) => resolved(code ?? signal)));
	const lines = createInterface({input: child.stdout});
	child.line = await Promise.race([new Promise(resolved => lines.once("line", resolved)), child.ended]);
	return child;
}

export async function stop(child, signal = "SIGTERM") {
	child.kill(signal);
	const end = await child.ended;
	children.delete(child);
	return end;
}

// Serves a folder at its own address, like any web server; close() ends it.
export async function serveFolder(folder) {
	const types = {html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", gz: "application/gzip", png: "image/png"};
	const server = createServer((request, response) => {
		const name = request.url === "/" ? "index.html" : request.url.slice(1);
		try {
			const bytes = readFileSync(join(folder, name));
			response.writeHead(200, {"content-type": types[name.split(".").pop()]}).end(bytes);
		} catch {
			response.writeHead(404).end();
		}
	});
	await new Promise(resolved => server.listen(0, "127.0.0.1", resolved));
	server.url = `http://127.0.0.1:${server.address().port}/`;
	return server;
}

// ---- a page at a time ----

const browser = await chromium.launch({
	executablePath: "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync"],
});

// Opens an address.  If the page has printed any message to the console, its close fails.
export async function open(url, options = {}) {
	const {ready = "[data-ready]", init, ...contextOptions} = options;
	const context = await browser.newContext({viewport: {width: 1000, height: 600}, ...contextOptions});
	if (init)
		await context.addInitScript(init);
	const page = await context.newPage();
	page.complaints = [];
	page.requests = [];
	page.on("console", message => page.complaints.push(message.text()));
	page.on("pageerror", error => page.complaints.push(error.stack));
	page.on("request", request => request.url().startsWith("blob:") || page.requests.push(request.url())); // a blob comes from the page itself
	page.setDefaultTimeout(PATIENCE_MS);
	if (SLOWER > 1)
		await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", {rate: SLOWER});
	await page.goto(url);
	await page.waitForSelector(ready, {state: "attached"});
	return page;
}

export async function close(page) {
	assert.deepEqual(page.complaints, []);
	await page.context().close();
}

// Waits by polling, because page.waitForFunction() needs a permission that the page's policy forbids.
export async function until(page, condition, argument) {
	const deadline = Date.now() + PATIENCE_MS;
	while (!await page.evaluate(condition, argument)) {
		assert.ok(Date.now() < deadline, `never came true: ${condition}`);
		await page.waitForTimeout(50);
	}
}

// Polls a function of the test until its result is true; returns the result.
export async function eventually(what, ask) {
	const deadline = Date.now() + PATIENCE_MS;
	for (;;) {
		const answer = await ask();
		if (answer)
			return answer;
		assert.ok(Date.now() < deadline, `never: ${what}`);
		await new Promise(resolved => setTimeout(resolved, 50));
	}
}

// ---- the visible page ----

// The address of the page has the shown part of the trace, the search and the selection.
export const place = page => page.url().split("#")[1] ?? "";
export const part = (page, name) => new URLSearchParams(place(page)).get(name) ?? "";
export const placed = (page, condition) => eventually(`an address where ${condition}, not ${place(page)}`, () => condition(place(page)) && place(page));

// Returns the shown interval in ns, once the condition holds for it.
const number = text => Number.parseFloat(text) * {ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9}[text.match(/[a-zµ]+$/)?.[0] ?? "s"];
export const seen = (page, condition = () => true) => eventually(`a stretch where ${condition}, not ${place(page)}`, () => {
	const [from, to] = part(page, "t").split("..").map(number), times = {from, to, span: to - from};
	return to !== undefined && condition(times) && times;
});
export const selected = async (page, condition = id => id !== "") => (await placed(page, () => condition(part(page, "sel"))), part(page, "sel"));

// Pixels of the page, or of an element of it, as a PNG and as red, green, blue.
// Takes the picture of a viewer without its lowest part, which has buttons.
export async function shot(page, selector = "main") {
	if (!selector.endsWith(".surface"))
		return page.locator(selector).screenshot();
	await page.locator(selector).scrollIntoViewIfNeeded();
	const {x, y, width, height} = await page.locator(selector).boundingBox();
	return page.screenshot({clip: {x, y, width, height: height - 60}});
}

export function unpack(png) {
	const width = png.readUInt32BE(16), height = png.readUInt32BE(20), channels = {2: 3, 6: 4}[png[25]], parts = [];
	for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12)
		if (png.toString("latin1", at + 4, at + 8) === "IDAT")
			parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
	const bytes = inflateSync(Buffer.concat(parts)), stride = width * channels, rgb = Buffer.alloc(width * height * 3);
	let above = Buffer.alloc(stride);
	for (let y = 0; y < height; y++) {
		const line = bytes.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)), filter = bytes[y * (stride + 1)];
		for (let i = 0; i < stride; i++) {
			const a = i < channels ? 0 : line[i - channels], b = above[i], c = i < channels ? 0 : above[i - channels], p = a + b - c;
			const paeth = Math.abs(p - a) <= Math.abs(p - b) && Math.abs(p - a) <= Math.abs(p - c) ? a : Math.abs(p - b) <= Math.abs(p - c) ? b : c;
			line[i] += [0, a, b, a + b >> 1, paeth][filter];
		}
		for (let x = 0; x < width; x++)
			line.copy(rgb, (y * width + x) * 3, x * channels, x * channels + 3);
		above = line;
	}
	return {width, height, rgb};
}

// Returns whether two pictures are equal; Chromium's dithering may change each colour by one step.
export function areAlike(one, other) {
	const [a, b] = [one, other].map(unpack);
	return a.width === b.width && a.height === b.height && a.rgb.every((value, i) => Math.abs(value - b.rgb[i]) < 2);
}

// Returns the number of pixels of a colour, 0xrrggbb, within the tolerance of smoothing.
export async function count(page, colour, selector) {
	const {rgb} = unpack(await shot(page, selector));
	let pixels = 0;
	for (let i = 0; i < rgb.length; i += 3)
		pixels += Math.abs(rgb[i] - (colour >> 16)) + Math.abs(rgb[i + 1] - (colour >> 8 & 255)) + Math.abs(rgb[i + 2] - (colour & 255)) < 12;
	return pixels;
}

export const NAMES_PX = 192; // the width of the strip with the names of rows
export const YELLOW = 0xffdd33; // colour of highlighted promises
export const RED = 0xb82029; // colour of promises that failed or never resolved

// Waits until the pixels differ from earlier ones and no longer change; returns them.
export const redrawn = (page, before, selector) => eventually("other pixels", async () => {
	const now = !(await shot(page, selector)).equals(before) && await still(page, selector);
	return now && !now.equals(before) && now;
});

// Waits until the picture no longer changes, and until the findings are known, whose sign would otherwise appear later.
export async function still(page, selector) {
	let before = await shot(page, selector);
	return eventually("pixels that stay", async () => {
		await page.locator("[aria-busy=true]").first().waitFor({state: "detached"});
		await page.waitForTimeout(150);
		/* a page without CPU time in that interval has not drawn its next frame */
		await page.evaluate(() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))));
		const now = await shot(page, selector), same = now.equals(before);
		before = now;
		return same && now;
	});
}

export const canvas = ".surface canvas[tabindex]";
export const cursor = page => page.evaluate(selector => getComputedStyle(document.querySelector(selector)).cursor, canvas);

// Returns a point of the picture at x where the pointer is a hand, on a promise.
export async function promiseAt(page, x, from = 100, to = 590) {
	for (let y = from; y < to; y++) {
		await page.mouse.move(x, y);
		if (await cursor(page) === "pointer")
			return y;
	}
	assert.fail(`no promise at ${x}`);
}

// Opens the finder and types into it; `said` is the expected text about the number of matches.
export async function find(page, text, said = /^[1-9]/) {
	await page.keyboard.press("/");
	await page.locator(".finder input").fill(text);
	await eventually(`${said} for ${text}`, async () => said.test(await page.locator(".finder output").textContent()));
}

// Records the calls of canvases, for drawsLike(); call it in the page before its scripts.  Texts are 7 px a character wide.
export function overhear() {
	const {prototype} = CanvasRenderingContext2D, told = globalThis.told = new Map();
	const colour = style => {
		const parts = style.startsWith("#") ? [1, 3, 5].map(at => parseInt(style.slice(at, at + 2), 16)) : style.match(/[\d.]+/g).map(Number);
		return [...parts.slice(0, 3), Math.round((parts[3] ?? 1) * 255)].join(" ");
	};
	const numbers = (...values) => values.map(value => value.toFixed(3)).join(" ");
	const path = [];
	const listener = {
		clearRect: context => told.set(context.canvas, []),
		beginPath: () => path.splice(0),
		moveTo: (context, x, y) => path.push(x, y),
		lineTo: (context, x, y) => path.push(x, y),
		translate: (context, x, y) => `at ${numbers(x, y)}`,
		putImageData: (context, {width, height, data}) => `pixels ${width} ${height} ${data.reduce((sum, byte) => Math.imul(sum ^ byte, 16777619), 0) >>> 0}`,
		fillRect: (context, ...box) => `rect ${colour(context.fillStyle)} ${numbers(...box)}`,
		stroke: context => `line ${colour(context.strokeStyle)} ${numbers(context.lineWidth, ...path)}`,
		fill: context => `head ${colour(context.fillStyle)} ${numbers(...path)}`,
		fillText: (context, text, x, y) => `text ${colour(context.fillStyle)} ${context.font.match(/^(bold )?[\d.]+/)[0]} ${numbers(x, y)} ${text}`,
	};
	for (const [name, listen] of Object.entries(listener)) {
		const original = prototype[name];
		prototype[name] = function(...values) {
			const line = listen(this, ...values);
			if (typeof line === "string")
				told.get(this.canvas)?.push(line);
			return original.apply(this, values);
		};
	}
	prototype.measureText = text => ({width: 7 * [...text].length});
}

export const drop = (page, name, bytes, shiftKey = false) => page.evaluate(([fileName, text, shift]) => {
	const transfer = new DataTransfer();
	transfer.items.add(new File([Uint8Array.from(atob(text), character => character.charCodeAt(0))], fileName));
	document.querySelector("main").dispatchEvent(
		new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true, shiftKey: shift}));
}, [name, Buffer.from(bytes).toString("base64"), shiftKey]);

// Drops a folder of the disk into the page, as a file manager does.
export async function dropFolder(page, path) {
	const session = await page.context().newCDPSession(page), data = {items: [], files: [path], dragOperationsMask: 1};
	for (const type of ["dragEnter", "dragOver", "drop"])
		await session.send("Input.dispatchDragEvent", {type, x: 300, y: 300, data});
}

// Fingers on the screen: touch(type, [x, y]...).
export async function fingers(page) {
	const session = await page.context().newCDPSession(page);
	return (type, ...points) => session.send("Input.dispatchTouchEvent", {type, touchPoints: points.map(([x, y], id) => ({x, y, id}))});
}

// Drags a finger in steps.  On a busy machine, the drag may last as long as a long press, which opens a menu; then the drag is repeated.
export async function dragFinger(page, touch, [x, y], dx) {
	do {
		await page.keyboard.press("Escape");
		await touch("touchStart", [x, y]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [x + dx * i / 5, y]);
		await touch("touchEnd");
	} while (await page.locator(".popup").isVisible());
}

// ---- running ----

// Each group: {prepare(), tests: {name: test}}.  WEFT_TEST_ONLY=text runs the tests with this text in their name.
export async function runAll(groups) {
	const only = process.env.WEFT_TEST_ONLY ?? "";
	let failed = 0;
	try {
		for (const {prepare, tests} of groups) {
			const chosen = Object.entries(tests).filter(([name]) => name.includes(only));
			if (chosen.length)
				await prepare?.();
			for (const [name, test] of chosen) {
				const began = Date.now();
				try {
					await test();
					console.log(`ok   ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
				} catch (error) {
					failed++;
					console.log(`FAIL ${name}\n     ${error.stack.replaceAll("\n", "\n     ")}`);
				}
			}
		}
	} finally {
		children.forEach(child => child.kill("SIGKILL"));
		await browser.close();
		rmSync(work, {recursive: true, force: true});
	}
	process.exit(failed ? 1 : 0); // also ends programs and pages that a failed test has left open
}
