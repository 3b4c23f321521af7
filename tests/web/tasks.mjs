// Usual questions about a server's trace, answered in the page as a user does.  The test counts the actions: a key, a click, or a typed word.
// SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {NAMES_PX, areAlike, canvas, close, eventually, file, find, open, overhear, place, placed, promiseAt, record, redrawn, run, seen, selected, shot, slow, still, until, weft} from "./drive.mjs";

// For each case: the text of the answer's first part, and the label of the promise to which it leads.
const CAUSES = {
	dependency: [/waiting for timer \d+ "db query" \(.*\), an external event; usually 1\.00 ms/, "db query"],
	lock: [/waiting for lock \d+ "cache", which request \d+ "GET \/export" held; usually nothing/, "GET /export"],
	stall: [/waiting for timer \d+ "db query", which may have been due while request \d+ "GET \/report" ran/, "GET /report"],
	queue: [/ready while request \d+ "GET \/report" ran/, "GET /report"],
	data: [/waiting for read \d+ "body" \(.*\), an external event/, "body"],
};

// The same for a server on Debian's Node.js.
const CAUSES_IN_NODE = {
	dependency: /waiting for connection \d+ "to 127\.0\.0\.1:\d+" to answer/,
	stall: /which may have been due while (connection \d+ "from .*"|coroutine \d+ ".*") ran/,
	lock: /waiting for timer \d+ "\d+ ms( to the next timer)?"/,
	data: /waiting for read \d+ of connection \d+ "from [^"]*"(?: \(.*\))?, an external event/,
};
const slowNode = new URL("../uv/slow_node.py", import.meta.url).pathname;

// Counts actions.
class Person {
	constructor(page) {
		Object.assign(this, {page, actions: 0});
	}

	async key(key) {
		await this.page.keyboard.press(key);
		this.actions++;
	}

	async click(what) {
		await what.click();
		this.actions++;
	}

	async type(text) {
		await this.page.keyboard.type(text);
		this.actions++;
	}
}

export function prepare() {
	for (const name of [...Object.keys(CAUSES), "connections"]) {
		run(slow, name, `slow-${name}`);
		run(weft, "html", `slow-${name}`, "-o", `slow-${name}.html`);
	}
	for (const name of Object.keys(CAUSES_IN_NODE)) {
		run(slowNode, weft, name, `node-${name}`);
		run(weft, "html", `node-${name}`, "-o", `node-${name}.html`);
	}
	run(weft, "html", "--compare", record("good"), record("bad"), "-o", "parted.html");
	run(weft, "html", record("bad"), "-o", "bad.html");
}

const title = page => page.locator(".panel .row[data-kind=title] .name").first().textContent();

// Returns start and end of a promise, in ns, by its label.
function times(trace, label) {
	const line = run(weft, "dump", trace).toString().split("\n").find(one => one.includes(`"${label}"`));
	const [, begin, end] = line.match(/(\d+\.\d{9}) \.\. (\d+\.\d{9})/);
	return {begin: Number(begin.replace(".", "")), end: Number(end.replace(".", ""))};
}

// Returns all canvas calls that overhear() has recorded.
const told = page => page.evaluate(() => [...globalThis.told.values()].flat());

// Returns the x of a time in the picture, right of the names of rows.
async function xOf(page, time) {
	const {from, span} = await seen(page), {width} = await page.locator(canvas).boundingBox();
	return NAMES_PX + (time - from) / span * (width - NAMES_PX);
}

// Moves the pointer at x until an object shows a tip that matches; returns the tip.
async function pointAt(page, x, says) {
	for (let y = 100; y < 590; y += 3) {
		await page.mouse.move(x, y);
		await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
		const tip = (await told(page)).find(line => line.startsWith("text ") && says.test(line));
		page.pointed = [x, y];
		if (tip)
			return tip;
	}
	assert.fail(`nothing at ${x} says ${says}`);
}

export const tests = {
	async "four actions find why the slowest request is slow"() {
		for (const [name, [says, leadsTo]] of Object.entries(CAUSES)) {
			const page = await open(file(`slow-${name}.html`)), person = new Person(page);
			await person.key("/");
			await person.type("item longer:20ms");
			await until(page, () => document.querySelector(".finder output").textContent === "1 found");
			await person.key("Enter");
			await selected(page);
			await person.click(page.getByRole("button", {name: "Why?"}));
			const parts = page.locator("[data-kind=evidence] .name");
			await eventually("an answer", async () => /times as long as usual/.test(await parts.first().textContent()));
			assert.match(await parts.nth(1).textContent(), says);
			assert.match(await parts.nth(1).textContent(), /^30\.\d ms, 9\d%: /);
			assert.ok(person.actions <= 4);
			await parts.nth(1).click();
			await eventually(`${leadsTo} took it`, async () => await title(page) === leadsTo);
			await close(page);
		}
	},

	async "four actions find why a read of Node.js is slow"() {
		for (const [name, says] of Object.entries(CAUSES_IN_NODE)) {
			const page = await open(file(`node-${name}.html`)), person = new Person(page);
			await person.key("/");
			await person.type("kind:=read longer:350ms");
			await until(page, () => /found$/.test(document.querySelector(".finder output").textContent));
			await person.key("Enter");
			await selected(page);
			await person.click(page.getByRole("button", {name: "Why?"}));
			const parts = page.locator("[data-kind=evidence] .name");
			await eventually("an answer", async () => /times as long as usual/.test(await parts.first().textContent()));
			assert.match(await parts.nth(1).textContent(), says);
			assert.ok(person.actions <= 4);
			await close(page);
		}
	},

	async "two actions fold all requests, and a link restores them folded"() {
		const page = await open(file("slow-lock.html"));
		await find(page, "item/1000", /^1 found/);
		await page.keyboard.press("Enter");
		await selected(page);
		await page.keyboard.press("Escape");
		const before = await still(page);
		await page.keyboard.press("B");
		await placed(page, where => where.endsWith("fold=kind:%3Drequest"));
		const folded = await redrawn(page, before), link = page.url();
		await page.keyboard.press("v");
		await placed(page, where => !where.includes("fold="));
		await redrawn(page, folded);
		await close(page);
		const again = await open(link);
		assert.ok(areAlike(await still(again), folded));
		await close(again);
	},

	async "one key groups rows, and a link restores the groups"() {
		const page = await open(file("slow-lock.html"), {init: overhear});
		await page.keyboard.press("Home");
		const before = await still(page);
		const named = async name => (await told(page)).some(line => line.startsWith("text ") && / bold /.test(line) && line.endsWith(` ${name}`));
		assert.ok(!await named("request"));
		await page.keyboard.press("G");
		await placed(page, where => where.endsWith("group=kind"));
		const byKind = await redrawn(page, before), link = page.url();
		for (const kind of ["request", "lock", "timer"])
			assert.ok(await named(kind), kind);
		await page.keyboard.press("G");
		await placed(page, where => where.endsWith("group=site"));
		await redrawn(page, byKind);
		assert.ok((await told(page)).some(line => /^text .* begin \(slow\.c:\d+\)$/.test(line)), (await told(page)).join("\n"));
		await page.keyboard.press("G");
		await placed(page, where => where.endsWith("group=library"));
		await eventually("its folder", async () => named("tests/analysis"));
		await page.keyboard.press("Alt+ArrowLeft");
		await page.keyboard.press("Alt+ArrowLeft");
		await placed(page, where => where.endsWith("group=kind"));
		await eventually("the picture by kind", async () => (await shot(page)).equals(byKind));
		await close(page);
		const again = await open(link, {init: overhear});
		assert.deepEqual(await still(again), byKind);
		await close(again);
	},

	async "two actions show one connection alone"() {
		const page = await open(file("slow-connections.html"), {init: overhear, viewport: {width: 1600, height: 600}}), person = new Person(page), y = await promiseAt(page, 500, 125);
		const before = await still(page);
		await page.mouse.click(500, y); // the first line is that of a connection
		person.actions++;
		await selected(page);
		assert.match(await title(page), /^client \d$/);
		await person.key("i");
		await placed(page, where => /focus=\d/.test(where));
		await redrawn(page, before);
		assert.equal(person.actions, 2);
		// all shown requests belong to this connection
		const own = Number((await title(page)).at(-1)) - 1;
		const names = (await told(page)).map(line => line.match(/^text .* (GET \/\d+|client \d)$/)?.[1]).filter(Boolean);
		assert.ok(names.filter(name => name.startsWith("GET")).length >= 8, names.join());
		for (const name of names)
			assert.ok(name.startsWith("GET") ? Number(name.slice(5)) % 3 === own : name === await title(page), name);
		await close(page);
	},

	async "two actions fold all reads"() {
		const page = await open(file("slow-connections.html"), {init: overhear}), person = new Person(page);
		const {begin, end} = times("slow-connections", "head");
		await page.keyboard.press("Home");
		await pointAt(page, await xOf(page, (begin + end) / 2), /text .* head, read/);
		await page.mouse.click(...page.pointed);
		person.actions++;
		await selected(page);
		const before = await still(page);
		await person.key("B");
		await placed(page, where => where.endsWith("fold=kind:%3Dread"));
		await redrawn(page, before);
		assert.equal(person.actions, 2);
		await close(page);
	},

	async "pointer at an arrow shows its meaning"() {
		const page = await open(file("slow-lock.html"), {init: overhear, viewport: {width: 1000 + NAMES_PX, height: 600}});
		await find(page, "disk", /^1 found/);
		await page.keyboard.press("Enter");
		await selected(page);
		await page.keyboard.press("Escape");
		await page.keyboard.press("z");
		await page.keyboard.press("Escape"); // removes the selection, so that the promise's arrows are drawn like all others
		await still(page);
		const tip = await pointAt(page, await xOf(page, times("slow-lock", "disk").end), / read the result of /);
		assert.match(tip, /\w+ \d+( "[^"]*")? read the result of timer \d+ "disk" at [\d.]+ .?s, /);
		await close(page);
	},

	async "one action measures the exact time between two events"() {
		const page = await open(file("slow-connections.html"), {init: overhear}), person = new Person(page);
		await page.keyboard.press("Home");
		const {span} = await seen(page), {end} = times("slow-connections", "GET /3"), {begin} = times("slow-connections", "GET /20");
		await pointAt(page, await xOf(page, begin) - 4, /text .* GET \/20, request/);
		const to = page.pointed;
		await pointAt(page, await xOf(page, end) + 4, /text .* GET \/3, request/);
		await page.keyboard.down("Shift");
		await page.mouse.down();
		await page.mouse.move(...to, {steps: 5});
		await page.mouse.up();
		await page.keyboard.up("Shift");
		person.actions++;
		assert.equal(person.actions, 1);
		await page.keyboard.press("m");
		const measured = await seen(page, view => view.span < span / 1.5);
		assert.deepEqual([measured.from, measured.from + measured.span], [end, begin]);
		await close(page);
	},

	async "short work inside a long sleep is visible, and S unfolds the sleep"() {
		const page = await open(file("bad.html"), {init: overhear}), facts = page.locator(".header .facts");
		await page.keyboard.press("R"); // the names are beside the work, not at the left edge
		await page.keyboard.press("Home");
		// two seconds after the start of the loop, which is before its first event, however late this event is
		const spanned = JSON.parse(run(weft, "info", "--json", "arp-bad")).span_ns / 1e9;
		assert.ok(spanned > 1, String(spanned));
		const long = (await facts.textContent()).match(/ ([\d.]+) s, awake for [\d.]+ .s; sleep is folded \(S\)$/)?.[1];
		assert.ok(Math.abs(long - spanned) < 0.01, `${long} s of ${spanned}`);
		const folded = await still(page), texts = await told(page);
		const gap = texts.map(line => Number(line.match(/^text .* ([\d.]+) s$/)?.[1])).find(length => length > spanned / 2);
		assert.ok(gap <= spanned + 0.005, `a gap says its length: ${gap}`);
		// the work fills the picture from left to right
		const xOfWrite = lines => Number(lines.find(line => /^text .* ring\.write$/.test(line)).match(/^text (?:[\d.]+ ){5}([\d.]+)/)[1]);
		assert.ok(xOfWrite(texts) > 100, String(xOfWrite(texts)));
		await page.keyboard.press("S");
		await placed(page, now => !now.includes("sleep="));
		await redrawn(page, folded);
		assert.ok((await facts.textContent()).endsWith(` ${long} s`));
		const link = page.url(), there = await told(page);
		assert.ok(xOfWrite(there) < 100, String(xOfWrite(there)));
		await page.keyboard.press("Alt+ArrowLeft");
		await placed(page, now => now.includes("&sleep=0"));
		await eventually("as before, to a pixel", async () => Math.abs(xOfWrite(await told(page)) - xOfWrite(texts)) <= 1);
		await close(page);
		const again = await open(link, {init: overhear});
		await still(again);
		assert.ok(Math.abs(xOfWrite(await told(again)) - xOfWrite(there)) <= 1);
		await close(again);
	},

	async "two actions find the first difference of two runs"() {
		const page = await open(file("parted.html")), person = new Person(page);
		await person.key("e");
		const order = page.locator(".row[data-kind=evidence]").filter({hasText: "the first action is the same"});
		await order.waitFor();
		const before = await still(page);
		await person.click(order);
		await selected(page);
		await redrawn(page, before);
		const [, good, bad] = (await order.textContent()).match(/in the first run, bind \d+ resolves task (\d+).* in the second, bind \d+ signals condition (\d+)/);
		assert.ok([good, bad].includes(await selected(page)), `${await selected(page)}, not ${good} or ${bad}`);
		assert.equal(person.actions, 2);
		await close(page);
	},

	async "ten times Alt+Left restores ten pictures"() {
		const page = await open(file("slow-lock.html"));
		await page.mouse.move(3, 3);
		for (const state of ["visible", "hidden"]) { // the panel stays closed
			await page.keyboard.press("p");
			await page.locator(".panel").waitFor({state});
		}
		const move = {
			wheel: async () => {
				await page.mouse.move(500, 300);
				const {span} = await seen(page);
				for (let notch = 0; notch < 4; notch++)
					await page.mouse.wheel(0, -100);
				await seen(page, now => now.span < span / 2.4); // waits, because Chromium does not wait until the page has got the last turn of the wheel
				await page.mouse.move(3, 3);
			},
			click: async () => {
				await page.mouse.click(500, await promiseAt(page, 500, 310)); // the request that waits for the lock
				await page.mouse.move(3, 3);
			},
		};
		const pictures = [await still(page)];
		for (const what of ["+", "wheel", "click", "b", "ArrowRight", "z", "i", "+", "u", "Home"]) {
			const before = place(page);
			await (move[what]?.() ?? page.keyboard.press(what));
			await placed(page, now => now !== before);
			await eventually(`a picture after ${what}`, async () => !(await shot(page)).equals(pictures.at(-1)));
			pictures.push(await still(page));
		}
		assert.equal(pictures.length, 11);
		for (let steps = 9; steps >= 0; steps--) {
			await page.keyboard.press("Alt+ArrowLeft");
			await eventually(`the picture after ${steps} moves`, async () => (await shot(page)).equals(pictures[steps]));
		}
		await close(page);
	},

	async "Back restores the view in which the page opened"() {
		const page = await open(file("slow-lock.html")), before = await still(page);
		assert.equal(place(page), "");
		await page.keyboard.press("+");
		await redrawn(page, before);
		await page.keyboard.press("Alt+ArrowLeft");
		await eventually("the picture of before", async () => (await shot(page)).equals(before));
		await close(page);
	},

	async "quick moves are undone one by one"() {
		const page = await open(file("slow-lock.html")), opened = await still(page);
		await page.mouse.click(500, await promiseAt(page, 500, 310));
		await page.mouse.move(3, 3); // moves the pointer away, because the picture changes with the object under the pointer
		const before = await redrawn(page, opened);
		for (const key of ["z", "b", "Home"])
			await page.keyboard.press(key);
		let now = await redrawn(page, before);
		for (let steps = 0; steps < 3; steps++) {
			await page.keyboard.press("Alt+ArrowLeft");
			now = await redrawn(page, now);
		}
		assert.ok(now.equals(before), "as it was before all three");
		await close(page);
	},

	async "two actions attribute all waiting time"() {
		const page = await open(file("slow-lock.html"), {init: overhear}), person = new Person(page), before = await still(page);
		await person.key("W");
		await redrawn(page, before);
		assert.ok((await told(page)).some(line => /^text .* Waiting time: 90\.\d ms in total, of 61 promises$/.test(line)));
		await pointAt(page, 900, /text .* disk: 33\.\d %, 30\.\d ms, of 1 promise$/);
		await page.mouse.click(...page.pointed);
		person.actions++;
		await eventually("whose time it was", async () => await title(page) === "disk");
		assert.equal(person.actions, 2);
		await placed(page, where => /blame=wait:\d+/.test(where));
		await page.mouse.move(3, 3);
		const near = await still(page), link = page.url();
		await page.getByRole("button", {name: /Below disk/}).click();
		await redrawn(page, near);
		await page.getByRole("button", {name: "By waiting time"}).click();
		await page.getByRole("button", {name: /GET \/item\/\*.*, [\d.]+ %, [\d.]+ .s, of \d+ promises?$/}).waitFor();
		await placed(page, where => where.endsWith("blame=run:0"));
		await page.keyboard.press("W");
		await placed(page, where => !where.includes("blame="));
		await close(page);
		const again = await open(link);
		assert.equal(await title(again), "disk");
		await again.getByRole("button", {name: /Below disk/}).waitFor();
		await close(again);
	},

	async "two actions list promises in flight of a hanging program"() {
		const page = await open(file("bad.html")), person = new Person(page), flight = page.getByRole("region", {name: "Live"});
		await person.key("F");
		await flight.getByText("At the end of the trace").waitFor();
		assert.match(await flight.locator("header .value").textContent(), /: 7 in flight, and 2 that need not end$/);
		assert.deepEqual((await flight.locator("h3").allTextContents()).map(text => text.split(" (")[0]), ["Types", "In flight", "Waits", "Threads", "Counters"]);
		const waits = flight.getByRole("button", {name: /^bind 9 "main", waits .* finally for task 14 "ARP response"$/});
		await person.click(waits);
		assert.equal(await selected(page), "9");
		assert.equal(person.actions, 2);
		// a click opens a type, and lists its promises
		const before = await flight.locator(".row").count();
		await flight.getByRole("button", {name: /condition "ARP response"/, expanded: false}).click();
		await flight.getByRole("button", {name: /condition "ARP response"/, expanded: true}).waitFor();
		assert.equal(await flight.locator(".row").count(), before + 1);
		await flight.locator(".card.open [data-kind=entry]").click();
		await selected(page, id => id === "1");
		await close(page);
	},

	async "finding of the summary is listed again only on request"() {
		const page = await open(file("bad.html"), {viewport: {width: 1280, height: 720}});
		await still(page);
		const shown = page.locator(".panel .row[data-kind=finding]:visible"), titles = await shown.locator(".name").allTextContents();
		assert.ok(titles.length > 0 && new Set(titles).size === titles.length, titles.join("\n"));
		await page.getByRole("button", {name: "List all findings"}).click();
		await page.getByRole("heading", {name: /^\d+ findings?$/}).waitFor();
		await close(page);
		const again = await open(file("bad.html"), {viewport: {width: 1280, height: 720}});
		await still(again);
		await again.locator(".panel .row[data-kind=finding]:visible").first().click();
		await again.locator(".card.open .row[data-kind=finding]:visible").waitFor(); // the finding is shown with its evidence
		await close(again);
	},

	async "two actions find the type that cost most"() {
		const page = await open(file("slow-dependency.html")), person = new Person(page);
		await person.key("q");
		const sort = page.getByRole("button", {name: /^request "GET \/item\/\*", [\d,]+ · p50 /});
		await person.click(sort);
		await page.getByRole("button", {name: "GET /item/1000, 30.2 ms"}).waitFor();
		assert.equal(person.actions, 2);
		await close(page);
	},
};
