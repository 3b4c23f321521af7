// Drives the page in Chromium as a person would: page.mjs WEFT GENERATE ARP FRAME DRIVER_DIRECTORY
// SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";

const [weft, generate, arp, frame, driver] = process.argv.slice(2).map(path => resolve(path));
const {chromium} = await import(pathToFileURL(join(driver, "node_modules/playwright-core/index.mjs")));
const work = mkdtempSync(join(tmpdir(), "weft-page-"));
const at = name => join(work, name);
const run = (command, ...args) => execFileSync(command, args, {cwd: work, stdio: ["ignore", "pipe", "inherit"]});

function record(mode) {
	const trace = at(`arp-${mode}`);
	spawnSync(arp, [mode], {env: {...process.env, WEFT_TRACE: trace}});
	return trace;
}

// Promises with labels that are not nice, each on its own.
function hostileTrace() {
	const quoted = text => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
	const lines = HOSTILE_LABELS.flatMap((label, i) => [`(op(Creates 0 ${i + 1}))`, `(op(Label ${i + 1} ${quoted(label)}))`]);
	return lines.map((line, i) => `((time ${i}.5)${line})\n`).join("");
}

// ---- a page at a time ----

const browser = await chromium.launch({
	executablePath: "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync"],
});
let requests = [];

// Opens an address; whatever the console says, and every request but for what is allowed, is a failure.
async function open(url, options = {}) {
	const context = await browser.newContext({viewport: {width: 1000, height: 600}, ...options});
	const page = await context.newPage();
	page.complaints = [];
	requests = [];
	page.on("console", message => page.complaints.push(message.text()));
	page.on("pageerror", error => page.complaints.push(error.stack));
	page.on("request", request => requests.push(request.url()));
	page.setDefaultTimeout(60000);
	await page.goto(url);
	await page.waitForSelector("[data-ready]", {state: "attached"});
	return page;
}

async function close(page) {
	assert.deepEqual(page.complaints, []);
	await page.context().close();
}

const place = page => page.evaluate(() => weft.stage.surface.ask("place"));
const times = async page => (await place(page)).match(/t=([^&]*)/)[1];
const found = page => page.evaluate(() => weft.stage.core.call.found(weft.stage.surface.active));
const selected = page => page.evaluate(() => weft.stage.core.call.selected(weft.stage.surface.active) >>> 0);
// Asks again and again; page.waitForFunction() would need what the page's policy forbids.
async function until(page, condition) {
	const deadline = Date.now() + 60000;
	while (!await page.evaluate(condition)) {
		assert.ok(Date.now() < deadline, `never came true: ${condition}`);
		await page.waitForTimeout(50);
	}
}
const picture = page => page.evaluate(() => (weft.stage.surface.draw(), weft.stage.surface.canvas.toDataURL().length));

const drop = (page, name, bytes) => page.evaluate(([fileName, text]) => {
	const transfer = new DataTransfer();
	transfer.items.add(new File([Uint8Array.from(atob(text), character => character.charCodeAt(0))], fileName));
	document.querySelector("main").dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}));
}, [name, Buffer.from(bytes).toString("base64")]);

// ---- the tests ----

const HOSTILE_NAME = `"><img src=x onerror=alert(1)>&lt;.sexp`;
const HOSTILE_LABELS = ["</script><img src=x onerror=alert(2)>", "<!--<script>", "\u05e9\u05dc\u05d5\u05dd", "\u{1f9f5} thread"];

const tests = {
	async "one file asks for nothing else, and draws"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		assert.deepEqual(requests.map(url => url.split("/").pop()), ["one.html"]);
		assert.ok(await picture(page) > 5000, "something is drawn");
		assert.match(await page.title(), /^arp-bad/);
		await close(page);
	},

	async "the wheel zooms at the pointer, dragging pans, Home shows all"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		await page.keyboard.press("Home");
		const whole = await times(page);
		await page.mouse.move(500, 300);
		await page.mouse.wheel(0, -300);
		const zoomed = await times(page);
		assert.notEqual(zoomed, whole);
		await page.mouse.down();
		await page.mouse.move(300, 300, {steps: 4});
		await page.mouse.up();
		assert.notEqual(await times(page), zoomed);
		await page.keyboard.press("Home");
		assert.equal(await times(page), whole);
		await close(page);
	},

	async "searching counts, lists and goes from match to match; nonsense is told"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		await page.keyboard.press("/");
		await page.keyboard.type("ARP response");
		await until(page, () => /[1-9]\d* found/.test(document.querySelector(".finder output").textContent));
		await page.keyboard.press("Enter");
		await until(page, () => /^\d+ of/.test(document.querySelector(".finder output").textContent));
		await page.waitForSelector(".results button");
		assert.match(await page.locator(".results button").first().textContent(), /ARP response/);
		await page.locator(".finder input").fill("longer:nonsense");
		await until(page, () => document.querySelector(".finder .wrong").textContent !== "");
		assert.equal(await found(page), 0);
		await page.keyboard.press("Escape");
		assert.ok(await page.locator(".finder").isHidden());
		await close(page);
	},

	async "the address says where one is, and leads there; back goes back"() {
		const url = pathToFileURL(at("one.html")).href;
		let page = await open(url);
		await page.keyboard.press("/");
		await page.keyboard.type("failed");
		await page.keyboard.press("Enter");
		await until(page, () => location.hash.includes("find=failed") && location.hash.includes("sel="));
		const there = page.url();
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		await page.keyboard.press("Escape");
		await until(page, () => !location.hash.includes("find="));
		await page.goBack();
		await until(page, () => weft.stage.core.call.found(weft.stage.surface.active) > 0);
		await close(page);
		page = await open(there);
		assert.ok(await found(page) > 0);
		assert.notEqual(await selected(page), 0xffffffff);
		assert.equal(`#${await place(page)}`, new URL(there).hash);
		await close(page);
	},

	async "the menu is at the bottom left, opens by mouse and closes by Escape; a right click has one too"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		const box = await page.locator(".menu-button").boundingBox();
		assert.ok(box.x < 50 && box.y > 500);
		await page.locator(".menu-button").click();
		assert.ok(await page.getByRole("menuitem", {name: /Export as SVG/}).isVisible());
		await page.keyboard.press("Escape");
		assert.ok(await page.locator(".popup").isHidden());
		await page.mouse.click(500, 300, {button: "right"});
		assert.ok(await page.getByRole("menuitem", {name: /Show the whole trace/}).isVisible());
		await close(page);
	},

	async "a counter is switched off in the menu, all of them by space"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		await page.locator(".menu-button").click();
		const item = page.getByRole("menuitemcheckbox", {name: "tcp-to-ip"});
		assert.equal(await item.getAttribute("aria-checked"), "true");
		await item.click();
		await page.locator(".menu-button").click();
		assert.equal(await item.getAttribute("aria-checked"), "false");
		await page.keyboard.press("Escape");
		const shown = await picture(page);
		await page.keyboard.press("Space");
		assert.match(await place(page), /metrics=0/);
		assert.ok(shown > 0);
		await close(page);
	},

	async "what is seen is exported as SVG and PNG"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		for (const [name, magic] of [["SVG", "<svg"], ["PNG", "\x89PNG"]]) {
			await page.locator(".menu-button").click();
			const [download] = await Promise.all([
				page.waitForEvent("download"), page.getByRole("menuitem", {name: `Export as ${name}`}).click()]);
			assert.equal(download.suggestedFilename(), `arp-bad.${name.toLowerCase()}`);
			const text = readFileSync(await download.path()).toString("latin1");
			assert.ok(text.slice(0, 200).includes(magic), text.slice(0, 40));
		}
		await close(page);
	},

	async "the panel tells of the selected promise, its links lead on, findings name the lost wake-up"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		await page.keyboard.press("/");
		await page.keyboard.type("failed");
		await until(page, () => /[1-9]\d* found/.test(document.querySelector(".finder output").textContent));
		await page.keyboard.press("Enter");
		await page.keyboard.press("Escape");
		await page.locator(".panel .finding").first().waitFor();
		assert.match(await page.locator(".panel .finding").first().textContent(), /ARP response/);
		const before = await selected(page);
		await page.locator(".panel section").first().locator(".link").first().click();
		assert.notEqual(await selected(page), before);
		await page.keyboard.press("Alt+ArrowLeft");
		assert.equal(await selected(page), before);
		await page.getByRole("button", {name: "Why?"}).click();
		assert.match(await page.locator(".panel section").first().textContent(), /ARP response/);
		await page.locator(".panel .close").click();
		assert.ok(await page.locator(".panel").isHidden());
		await close(page);
	},

	async "what is missing in a trace is told in a bar"() {
		const page = await open(pathToFileURL(at("cut.html")).href);
		await page.locator(".bar").waitFor();
		assert.match(await page.locator(".bar").textContent(), /\w/);
		await page.locator(".bar button").click();
		assert.ok(await page.locator(".bar").isHidden());
		await close(page);
	},

	async "two traces stand one above the other and are searched together"() {
		const page = await open(pathToFileURL(at("two.html")).href);
		assert.deepEqual(await page.locator(".titles h2").allTextContents(), ["arp-good", "arp-bad"]);
		await page.keyboard.press("/");
		await page.keyboard.type("ring.write");
		await until(page, () => {
			const {core} = weft.stage;
			return core.call.found(core.call.viewer(0)) > 0 && core.call.found(core.call.viewer(1)) > 0;
		});
		await close(page);
	},

	async "two fingers zoom, one pans, a long press has the menu"() {
		const page = await open(pathToFileURL(at("one.html")).href, {hasTouch: true, isMobile: true, viewport: {width: 390, height: 780}});
		const session = await page.context().newCDPSession(page);
		const touch = (type, ...points) => session.send("Input.dispatchTouchEvent",
			{type, touchPoints: points.map(([x, y], id) => ({x, y, id}))});
		const whole = await times(page);
		await touch("touchStart", [150, 300], [250, 300]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [150 - 20 * i, 300], [250 + 20 * i, 300]);
		await touch("touchEnd");
		const zoomed = await times(page);
		assert.notEqual(zoomed, whole);
		await touch("touchStart", [200, 300]);
		for (let i = 1; i <= 5; i++)
			await touch("touchMove", [200 - 20 * i, 300]);
		await touch("touchEnd");
		assert.notEqual(await times(page), zoomed);
		await touch("touchStart", [200, 400]);
		await page.locator(".popup").waitFor();
		await touch("touchEnd");
		await close(page);
	},

	async "dark where the desktop is dark"() {
		const page = await open(pathToFileURL(at("one.html")).href, {colorScheme: "dark"});
		assert.ok(await page.locator(".weft.dark").count());
		const [red] = await page.evaluate(() => [...weft.stage.surface.context.getImageData(5, 300, 1, 1).data]);
		assert.ok(red < 80, `the background is ${red}`);
		await close(page);
	},

	async "a file that is dropped is opened, one that is no trace is told of"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		await drop(page, "dropped.ctf", readFileSync(at("few.ctf")));
		await until(page, () => weft.stage.names[0] === "dropped.ctf");
		await drop(page, "letter.txt", "Dear weft,");
		await until(page, () => document.querySelector(".message.failed")?.textContent.startsWith("letter.txt: "));
		await close(page);
	},

	async "hostile names and labels are texts; right to left and emoji are shown"() {
		const page = await open(pathToFileURL(at("hostile.html")).href);
		assert.ok((await page.title()).startsWith(HOSTILE_NAME));
		await page.keyboard.press("/");
		await page.keyboard.type("shorter:100s");
		await until(page, () => document.querySelectorAll(".results button").length === 5);
		const lines = (await page.locator(".results button").allTextContents()).join("\n");
		for (const label of HOSTILE_LABELS)
			assert.ok(lines.includes(label), `${label} in ${lines}`);
		assert.equal(await page.locator("img").count(), 0);
		await close(page);
	},

	async "damage is told in the page"() {
		const page = await open(pathToFileURL(at("damaged.html")).href);
		assert.match(await page.locator(".message.failed").textContent(), /^arp-bad: /);
		await close(page);
	},

	async "a web server serves a directory, from which nothing else is asked"() {
		const server = createServer((request, response) => {
			const name = request.url === "/" ? "index.html" : request.url.slice(1);
			const type = name.endsWith(".html") ? "text/html" : name.endsWith(".js") ? "text/javascript" : "application/gzip";
			try {
				response.writeHead(200, {"content-type": type}).end(readFileSync(join(at("served"), name)));
			} catch {
				response.writeHead(404).end();
			}
		});
		await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
		const url = `http://127.0.0.1:${server.address().port}/`;
		const page = await open(url);
		assert.ok(await picture(page) > 5000);
		assert.deepEqual(requests.map(request => request.slice(url.length)).sort(), ["", "trace-1.gz", "trace-2.gz", "weft.js"]);
		await close(page);
		server.close();
	},

	async "draw lists are the native ones, byte for byte"() {
		const page = await open(pathToFileURL(at("one.html")).href);
		await page.evaluate(() => {
			weft.stage.surface.measured = false;
		});
		await drop(page, "few.ctf", readFileSync(at("few.ctf")));
		await until(page, () => weft.stage.names[0] === "few.ctf" && weft.stage.surface.count === 1);
		for (const where of ["", "t=0..20us", "t=1us..1.1ms&find=longer:10us", "t=0..3us&metrics=0&y=3"]) {
			const list = await page.evaluate(place => {
				const {core, surface} = weft.stage;
				core.withText(place, text => surface.ask("go", text));
				while (core.call.weft_compare_search_step(surface.compare, 1000))
					;
				return [0, 1, 2, 3, 4].map(pane => core.cstring(core.call.dump(surface.active, pane))).join("");
			}, where);
			assert.equal(list, run(frame, "few.ctf", "1000", "600", where).toString(), where);
		}
		await close(page);
	},
};

let failed = 0;
try {
	record("good");
	record("bad");
	run(generate, "short", "--events=2000", "-o", "few.ctf");
	writeFileSync(at("cut.ctf"), readFileSync(at("few.ctf")).subarray(0, 10000));
	run(weft, "html", "cut.ctf", "-o", "cut.html");
	run(weft, "html", "arp-bad", "-o", "one.html");
	run(weft, "html", "arp-good", "arp-bad", "-o", "two.html");
	run(weft, "html", "arp-good", "arp-bad", "-o", "served");
	writeFileSync(at(HOSTILE_NAME), hostileTrace());
	run(weft, "html", HOSTILE_NAME, "-o", "hostile.html");
	const page = readFileSync(at("one.html"), "latin1");
	const trace = page.indexOf('class="trace"'), start = page.indexOf(">", trace) + 1;
	writeFileSync(at("damaged.html"), `${page.slice(0, start + 200)}AAAAAAAA${page.slice(start + 208)}`, "latin1");
	for (const [name, test] of Object.entries(tests)) {
		try {
			await test();
			console.log(`ok   ${name}`);
		} catch (error) {
			failed++;
			console.log(`FAIL ${name}\n     ${error.stack.replaceAll("\n", "\n     ")}`);
		}
	}
} finally {
	await browser.close();
	rmSync(work, {recursive: true, force: true});
}
process.exitCode = failed ? 1 : 0;
