// What the tests of the page share: the programs under test, a folder to work in, Chromium, and what a person does in it.
// SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {execFileSync, spawn, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";

const PATIENCE_MS = 60000;

export const [weft, generate, arp, frame, httpServer, driver] = process.argv.slice(2).map(path => path && resolve(path));
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

// ---- programs that run meanwhile ----

const children = new Set();

// Starts a program that says in its first line where it is.
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

// Serves a folder at an address of its own, as any web server does; close() ends it.
export async function serveFolder(folder) {
	const types = {html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", gz: "application/gzip"};
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

// Opens an address; whatever the console says is a failure when the page is closed.
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
	page.on("request", request => page.requests.push(request.url()));
	page.setDefaultTimeout(PATIENCE_MS);
	await page.goto(url);
	await page.waitForSelector(ready, {state: "attached"});
	return page;
}

export async function close(page) {
	assert.deepEqual(page.complaints, []);
	await page.context().close();
}

// Asks again and again; page.waitForFunction() would need what the page's policy forbids.
export async function until(page, condition, argument) {
	const deadline = Date.now() + PATIENCE_MS;
	while (!await page.evaluate(condition, argument)) {
		assert.ok(Date.now() < deadline, `never came true: ${condition}`);
		await page.waitForTimeout(50);
	}
}

export const place = page => page.evaluate(() => weft.stage.surface.ask("place"));
export const times = async page => (await place(page)).match(/t=([^&]*)/)[1];
export const found = page => page.evaluate(() => weft.stage.core.call.found(weft.stage.surface.active));
export const selected = page => page.evaluate(() => weft.stage.core.call.selected(weft.stage.surface.active) >>> 0);
export const picture = page => page.evaluate(() => (weft.stage.surface.draw(), weft.stage.surface.canvas.toDataURL().length));

export const drop = (page, name, bytes, shiftKey = false) => page.evaluate(([fileName, text, shift]) => {
	const transfer = new DataTransfer();
	transfer.items.add(new File([Uint8Array.from(atob(text), character => character.charCodeAt(0))], fileName));
	document.querySelector("main").dispatchEvent(
		new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true, shiftKey: shift}));
}, [name, Buffer.from(bytes).toString("base64"), shiftKey]);

// Fingers on the screen: touch(type, [x, y]...).
export async function fingers(page) {
	const session = await page.context().newCDPSession(page);
	return (type, ...points) => session.send("Input.dispatchTouchEvent", {type, touchPoints: points.map(([x, y], id) => ({x, y, id}))});
}

// ---- all of them ----

// Each group: {prepare(), tests: {name: test}}.  WEFT_TEST_ONLY=text runs those with it in their name.
export async function runAll(groups) {
	const only = process.env.WEFT_TEST_ONLY ?? "";
	let failed = 0;
	try {
		for (const {prepare, tests} of groups) {
			const chosen = Object.entries(tests).filter(([name]) => name.includes(only));
			if (chosen.length)
				await prepare?.();
			for (const [name, test] of chosen) {
				try {
					await test();
					console.log(`ok   ${name}`);
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
	process.exit(failed ? 1 : 0); // also where a test that failed has left something open
}
