// weft serve: its HTTP server, and a page that follows a program.  SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {mkdirSync, renameSync, writeFileSync} from "node:fs";
import {request} from "node:http";
import {connect} from "node:net";
import {networkInterfaces} from "node:os";
import {at, close, eventually, find, generate, httpServer, open, placed, redrawn, run, selected, start, still, stop, weft} from "./drive.mjs";

// Returns status, headers and body of a server's response.
const ask = (url, options = {}) => new Promise((resolve, reject) => {
	request(url, options, response => {
		let body = "";
		response.setEncoding("latin1").on("data", text => body += text);
		response.on("end", () => resolve({status: response.statusCode, headers: response.headers, body}));
	}).on("error", reject).end();
});

// Returns the number of promises, from the title of the page's header.
const promises = async page => Number((await page.locator(".header .facts").textContent()).match(/([\d,]+) promises/)?.[1].replaceAll(",", "") ?? 0);
const more = (page, than) => eventually(`more than ${than} promises`, async () => await promises(page) > than && promises(page));
const state = page => page.locator(".live").getAttribute("data-state");
const told = (page, text) => page.locator(".live", {hasText: text}).waitFor();

export function prepare() {
	run(generate, "short", "--events=2000", "-o", "still.ctf");
	mkdirSync(at("files"), {recursive: true});
	writeFileSync(at("files/hello.txt"), "hello");
}

export const tests = {
	async "weft serve answers only requests with its token"() {
		const server = await start(weft, ["serve", "still.ctf"]);
		const url = server.line;
		assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
		const {origin, pathname, port, hostname} = new URL(url);
		const right = await ask(url);
		assert.equal(right.status, 200);
		assert.match(right.headers["content-security-policy"], /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src blob:;/);
		assert.equal(right.headers["referrer-policy"], "no-referrer");
		assert.equal(right.headers["cache-control"], "no-store");
		const wrong = pathname.replace(/[0-9a-f]/, digit => digit === "0" ? "1" : "0");
		for (const path of ["/", "/trace-1", wrong, `${wrong}trace-1`, pathname.slice(0, -1), `${pathname}../`, `${pathname}trace-2`, `${pathname}%2e%2e/weft.js`])
			assert.equal((await ask(origin, {path})).status, 404, path);
		// DNS rebinding: a foreign name that resolves to this address
		for (const [host, status] of [["evil.example", 403], [`evil.example:${port}`, 403], ["127.0.0.1.evil.example", 403],
			["localhost.evil.example", 403], [`localhost:${port}`, 200], [`127.0.0.1:${port}`, 200]])
			assert.equal((await ask(url, {headers: {host}})).status, status, host);
		assert.ok((await ask(url, {setHost: false})).status >= 400, "no host");
		for (const method of ["POST", "PUT", "DELETE", "OPTIONS"])
			assert.equal((await ask(url, {method})).status, 405, method);
		const trace = await ask(`${url}trace-1`);
		assert.equal((await ask(`${url}trace-1`, {headers: {"if-none-match": trace.headers.etag}})).status, 304);
		assert.equal((await ask(`${url}trace-1`, {method: "HEAD"})).headers["content-length"], String(trace.body.length));
		// the server listens at no other address
		const others = Object.values(networkInterfaces()).flat().filter(net => !net.internal && net.family === "IPv4");
		for (const {address} of others)
			await assert.rejects(ask(url.replace(hostname, address)), /ECONNREFUSED/);
		assert.equal(await stop(server, "SIGINT"), 0);
	},

	async "malformed and unfinished requests do not delay other clients"() {
		const server = await start(weft, ["serve", "still.ctf"]), {hostname, port, pathname} = new URL(server.line);
		const say = text => new Promise(resolve => {
			const socket = connect(port, hostname, () => socket.write(text));
			socket.on("error", () => resolve("")).on("data", bytes => resolve(bytes.toString("latin1"))).on("end", () => resolve(""));
			socket.on("close", () => resolve(""));
			sockets.push(socket);
		});
		const sockets = [], host = `Host: ${hostname}\r\n`;
		for (const nonsense of ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", `${"x".repeat(100000)}\r\n\r\n`, `GET ${"/a".repeat(50000)} HTTP/1.1\r\n${host}\r\n`,
			`GET ${pathname} HTTP/1.1\r\n${host}${"A: b\r\n".repeat(20000)}\r\n`, `POST ${pathname} HTTP/1.1\r\n${host}Content-Length: 9999999999\r\n\r\nx`])
			assert.doesNotMatch(await say(nonsense), /^HTTP\/1.1 200/);
		for (let i = 0; i < 30; i++)
			say(`GET ${pathname}trace-1 HTTP/1.1\r\nHo`); // and no more
		const answers = await Promise.all(Array.from({length: 20}, () => ask(`${server.line}trace-1`)));
		assert.ok(answers.every(({status, body}) => status === 200 && body.length === answers[0].body.length));
		sockets.forEach(socket => socket.destroy());
		assert.equal(await stop(server), 0);
	},

	async "each server has its token, its --listen address and short errors"() {
		const hasIPv6 = networkInterfaces().lo?.some(net => net.address === "::1");
		const other = hasIPv6 ? "[::1]" : "127.0.0.2";
		const one = await start(weft, ["serve", "still.ctf"]), two = await start(weft, ["serve", `--listen=${other}:0`, "still.ctf"]);
		assert.notEqual(new URL(one.line).pathname, new URL(two.line).pathname);
		assert.ok(two.line.startsWith(`http://${other}:`));
		assert.equal((await ask(two.line)).status, 200);
		const says = (...args) => {
			const {status, stdout, stderr} = spawnSync(weft, ["serve", ...args], {cwd: at(""), encoding: "utf-8"});
			assert.deepEqual([status, stdout], [2, ""]);
			return stderr;
		};
		const port = new URL(one.line).port;
		assert.equal(says("none"), "weft: none: No such file or directory\n");
		assert.equal(says("still.ctf", `--listen=:${port}`), `weft serve: cannot listen on :${port}: Address already in use\n`);
		for (const wrong of ["127.0.0.1:x", "127.0.0.1:70000", "[::1", "[::1]8"])
			assert.equal(says("still.ctf", `--listen=${wrong}`), `weft serve: not an address: --listen=${wrong}; use HOST, HOST:PORT or :PORT\n`);
		await stop(one);
		await stop(two);
	},

	async "page follows a running program and can pause"() {
		if (!httpServer) {
			console.log("     skipped: the example http-server is not built");
			return;
		}
		const program = await start(httpServer, ["--port=0", "files"], {WEFT_TRACE: at("live.weft")});
		const server = await start(weft, ["serve", "live.weft"]);
		const get = async count => {
			for (let i = 0; i < count; i++)
				assert.equal((await ask(`${program.line}hello.txt`)).body, "hello");
		};
		await get(3);
		const page = await open(server.line);
		assert.equal(await state(page), "live");
		const before = await more(page, 0);
		await get(20);
		await more(page, before + 20);

		// the table of types covers the whole trace so far, and the open type stays open
		await page.keyboard.press("q");
		const sort = page.getByRole("button", {name: /^request "GET \/hello.txt", /});
		await sort.click();
		const count = async () => Number((await sort.getAttribute("aria-label")).match(/, ([\d,]+) \u00b7/)[1].replaceAll(",", ""));
		await eventually("all of them", async () => await count() === 23);
		await get(20);
		await eventually("20 more", async () => await count() === 43);
		assert.equal(await sort.getAttribute("aria-expanded"), "true");
		await sort.click();

		// a refresh keeps selection and search, and adds no entry to the history
		await find(page, "longer:0s");
		await page.keyboard.press("Enter");
		const where = await placed(page, text => text.includes("find=") && text.includes("sel="));
		const number = async () => Number((await page.locator(".finder output").textContent()).match(/of (\d+)/)?.[1] ?? 0);
		const matches = await number(), length = await page.evaluate(() => history.length);
		await get(20);
		await eventually("more matches", async () => await number() > matches);
		await placed(page, text => text.match(/sel=\d+/)[0] === where.match(/sel=\d+/)[0] && /find=longer/.test(text));
		assert.equal(await page.evaluate(() => history.length), length);

		// a paused page shows that there are new events, and shows them on request
		await page.getByRole("button", {name: "Live"}).click();
		assert.equal(await state(page), "held");
		await get(20);
		await told(page, "Paused; there are new events");
		const held = await promises(page), picture = await still(page, ".surface");
		await get(20);
		assert.ok((await still(page, ".surface")).equals(picture));
		assert.equal(await promises(page), held);
		await page.keyboard.press("F5"); // shows the trace as it is now, and no later events
		const reloaded = await more(page, held);
		await get(20);
		await told(page, "Paused; there are new events");
		assert.equal(await promises(page), reloaded);
		await page.getByRole("button", {name: "Paused"}).click();
		await more(page, reloaded + 20);

		// missing parts are reported once
		await page.locator(".bar button").click();
		const before2 = await promises(page);
		await get(5);
		await more(page, before2);
		assert.ok(await page.locator(".bar").isHidden());

		// when the program ends, the page still shows the trace
		await stop(program);
		await eventually("its end", async () => await state(page) === "ended");
		const last = await promises(page);
		await page.reload();
		await page.waitForSelector("[data-ready]", {state: "attached"});
		assert.equal(await promises(page), last);
		await stop(server);
		await told(page, "weft serve no longer answers");
		page.complaints = page.complaints.filter(text => !/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(text));
		await close(page);
	},

	async "list of promises in flight follows the program and can pause"() {
		if (!httpServer) {
			console.log("     skipped: the example http-server is not built");
			return;
		}
		const program = await start(httpServer, ["--port=0", "files"], {WEFT_TRACE: at("flight.weft")});
		const server = await start(weft, ["serve", "flight.weft"]), {hostname, port} = new URL(program.line);
		const page = await open(server.line), flight = page.getByRole("region", {name: "Live"});
		const says = text => flight.getByText(text).first().waitFor();
		const clients = [], ask = () => clients.push(connect(port, hostname).on("error", () => {}));
		await page.keyboard.press("F");
		await says("Now");
		ask();
		await says(/^1 · min 0 · max 1$/); // the counter of connections
		// the keyboard focus stays on its row when new rows appear above it
		await flight.locator("button[data-kind=entry]").first().focus();
		const focus = () => page.evaluate(() => document.activeElement.querySelector(".name")?.textContent);
		const name = await focus();
		ask();
		await says(/^2 · min 0 · max 2$/);
		assert.equal(await focus(), name);
		await page.keyboard.press("Enter");
		const first = await selected(page);
		// if a button is held during a refresh, the release acts on this button
		const other = flight.locator("[data-kind=entry]", {hasNotText: name}).first();
		await other.scrollIntoViewIfNeeded();
		const box = await other.boundingBox();
		await page.mouse.move(box.x + 20, box.y + box.height / 2);
		await page.mouse.down();
		const before = await promises(page);
		ask();
		await more(page, before);
		await page.mouse.up();
		await selected(page, id => id && id !== first);
		await says(/^3 · min 0 · max 3$/);
		// a paused list stays the same, also after the panel is closed and opened again
		await page.getByRole("button", {name: "Live", exact: true}).click();
		ask();
		await told(page, "Paused; there are new events");
		await page.keyboard.press("F");
		await says(/^3 · min 0 · max 3$/);
		await page.getByRole("button", {name: "Paused"}).click();
		await says(/^4 · min 0 · max 4$/);
		clients.forEach(client => client.destroy());
		await stop(program);
		await says("At the end of the trace");
		await stop(server);
		await told(page, "weft serve no longer answers");
		page.complaints = page.complaints.filter(text => !/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(text));
		await close(page);
	},

	async "two running programs share one picture"() {
		if (!httpServer) {
			console.log("     skipped: the example http-server is not built");
			return;
		}
		const programs = [];
		for (const name of ["live-a", "live-b"])
			programs.push(await start(httpServer, ["--port=0", "files"], {WEFT_TRACE: at(name)}));
		const server = await start(weft, ["serve", "live-a", "live-b"]);
		const page = await open(server.line);
		assert.equal(await state(page), "live");
		for (const program of programs) {
			const before = await promises(page);
			for (let i = 0; i < 5; i++)
				assert.equal((await ask(`${program.line}hello.txt`)).body, "hello");
			await more(page, before + 5);
		}
		assert.equal(await page.locator(".surface").count(), 1);
		for (const program of programs)
			await stop(program);
		await eventually("their end", async () => await state(page) === "ended");
		await stop(server);
		await told(page, "weft serve no longer answers");
		page.complaints = page.complaints.filter(text => !/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(text));
		await close(page);
	},

	async "replaced trace is reloaded, and a deleted one stays visible"() {
		run(generate, "short", "--events=200", "-o", "changing.ctf");
		const server = await start(weft, ["serve", "--compare", "changing.ctf", "still.ctf"]);
		const page = await open(server.line);
		const titles = ["changing.ctf", "still.ctf"];
		assert.deepEqual(await page.locator(".titles h2").allTextContents(), titles);
		await page.mouse.move(3, 3);
		const before = await still(page, ".surface");
		run(generate, "short", "--events=400", "-o", "next.ctf");
		renameSync(at("next.ctf"), at("changing.ctf"));
		await redrawn(page, before, ".surface");
		const picture = await still(page, ".surface");
		renameSync(at("changing.ctf"), at("elsewhere.ctf"));
		await told(page, /changing.ctf: No such file/);
		assert.deepEqual(await page.locator(".titles h2").allTextContents(), titles);
		assert.ok((await still(page, ".surface")).equals(picture));
		renameSync(at("elsewhere.ctf"), at("changing.ctf"));
		await eventually("it is there again", async () => await state(page) === "ended");
		await stop(server);
		page.complaints = page.complaints.filter(text => !/503|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(text));
		await close(page);
	},
};
