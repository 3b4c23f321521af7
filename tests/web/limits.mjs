// Errors of the page: damaged and empty traces, and not enough memory; and the restrictions of its policy.  SPDX-License-Identifier: ISC
import assert from "node:assert/strict";
import {readFileSync, writeFileSync} from "node:fs";
import {gunzipSync, gzipSync} from "node:zlib";
import {RED, at, canvas, close, count, drop, eventually, file, find, frame, generate, open, overhear, place, placed, record, run, selected, still, weft} from "./drive.mjs";

const message = page => page.locator(".message").textContent();

// A page whose embedded trace was changed: (bytes of gzip) => bytes.
function changed(name, change, size = "") {
	const page = readFileSync(at("limits.html"), "latin1");
	const trace = page.indexOf('class="trace"'), start = page.indexOf(">", trace) + 1, end = page.indexOf("</script>", start);
	const bytes = change(Buffer.from(page.slice(start, end), "base64"));
	const head = size ? page.slice(0, start).replace(/data-size="\d+">$/, `data-size="${size}">`) : page.slice(0, start);
	writeFileSync(at(name), `${head}${bytes.toString("base64")}${page.slice(end)}`, "latin1");
	return file(name);
}

export function prepare() {
	record("bad");
	run(weft, "html", "arp-bad", "-o", "limits.html");
	run(generate, "short", "--events=20000", "-o", "some.ctf");
	run(generate, "random", "--events=1M", "-o", "large.ctf");
	run(weft, "html", "large.ctf", "-o", "large.html");
}

export const tests = {
	async "damaged file around an embedded trace is reported"() {
		for (const [name, change, wanted] of [
			["cut-short.html", bytes => bytes.subarray(0, bytes.length / 2), /damaged: it cannot be unpacked/],
			["empty.html", () => Buffer.alloc(0), /arp-bad: /],
			["no-trace.html", () => gzipSync("Dear weft,"), /not a trace/],
			["garbage.html", bytes => Buffer.concat([bytes.subarray(0, 30), Buffer.alloc(100, 7), bytes.subarray(130)]), /damaged/],
		]) {
			const page = await open(changed(name, change));
			assert.match(await message(page), wanted, name);
			assert.ok(await page.locator(".message.failed").isVisible());
			await close(page);
		}
		const letters = changed("letters.html", bytes => bytes);
		const text = readFileSync(at("letters.html"), "latin1");
		writeFileSync(at("letters.html"), text.replace(/(data-size="\d+">.{100})..../, "$1\u00e4\u00f6!?"), "latin1");
		const page = await open(letters);
		assert.match(await message(page), /arp-bad: damaged/);
		await close(page);
	},

	async "damaged part of a trace is skipped and reported"() {
		const page = await open(changed("damaged-inside.html", bytes => {
			const tar = gunzipSync(bytes), packet = tar.indexOf(Buffer.from([0xc1, 0x1f, 0xfc, 0xc1]), tar.indexOf("stream-"));
			tar.fill(0xee, packet + 800, packet + 900);
			return gzipSync(tar);
		}));
		await page.locator(".bar").waitFor();
		assert.match(await page.locator(".bar").textContent(), /damaged|could not be read|skipped|passed over/);
		await eventually("the rest is drawn", async () => await count(page, RED) > 20);
		await close(page);
	},

	async "trace larger than the memory of a page is reported"() {
		for (const size of ["4294900000", "99999999999"]) {
			const page = await open(changed(`size-${size}.html`, bytes => bytes, size));
			assert.match(await message(page), /^arp-bad: too large for the memory/);
			await close(page);
		}
		// after the error, a trace that fits into memory can still be opened
		const page = await open(file("size-99999999999.html"));
		await drop(page, "some.ctf", readFileSync(at("some.ctf")));
		await page.getByRole("application", {name: "Promises of some.ctf"}).waitFor();
		await page.locator(".message").waitFor({state: "hidden"});
		await close(page);
	},

	async "reading a trace shows its progress and can be cancelled"() {
		const page = await open(file("large.html"), {ready: ".message"});
		const message = page.getByRole("alert");
		await message.filter({hasText: /^Opening large.ctf/}).waitFor();
		await page.getByRole("button", {name: "Close"}).first().click();
		await message.filter({hasText: /^large.ctf: reading was cancelled/}).waitFor();
		await drop(page, "some.ctf", readFileSync(at("some.ctf")));
		await page.getByRole("application", {name: "Promises of some.ctf"}).waitFor();
		await close(page);
	},

	/* A new layout needs memory, which must not overlap that of the trace; also if nothing was drawn and no memory was used before the trace arrived. */
	async "page draws 200,000 promises as the native core does"() {
		const hide = () => document.addEventListener("DOMContentLoaded", () => {
			globalThis.veil = new CSSStyleSheet();
			veil.replaceSync("main { display: none }");
			document.adoptedStyleSheets = [...document.adoptedStyleSheets, veil];
		});
		const page = await open(file("large.html"), {init: `(${overhear})(); (${hide})()`});
		await page.evaluate(() => veil.replaceSync(""));
		await page.locator(canvas).focus();
		await find(page, "id:50000", /^1 found/);
		await page.keyboard.press("Enter");
		await selected(page, id => id === "50000");
		await page.keyboard.press("Escape"); // the finder
		await page.keyboard.press("p"); // the panel
		await page.mouse.move(3, 3);
		const {width, height} = await page.locator(canvas).boundingBox();
		for (const [key, suits] of [["i", /&focus=50000/], ["u", /sel=50000$/], ["B", /&fold=/], ["v", /sel=50000(&thin=1)?$/], ["G", /&group=kind/], ["B", /&fold=/], ["v", /&group=kind(&thin=1)?$/]]) {
			await page.keyboard.press(key);
			await placed(page, where => suits.test(where));
			await still(page);
			if (key === "i") // the lane appears when the worker has answered
				continue;
			const wanted = run(frame, "large.ctf", String(width), String(height), place(page)).toString().trimEnd().split("\n");
			assert.ok(wanted.length > 50, `${wanted.length} lines`);
			const told = await page.evaluate(() => [...document.querySelectorAll(".surface canvas")].flatMap(one => globalThis.told.get(one)));
			assert.deepEqual(told, wanted, `${key}, at ${page.url()}`);
		}
		await close(page);
	},

	/* The worker of a large trace is stopped when it has answered, so the first question of the user starts a new worker, with a copy of the memory. */
	async "newest of several Why questions is answered"() {
		const page = await open(file("large.html"));
		await page.locator(canvas).focus();
		await still(page);
		const about = async id => {
			await find(page, `id:${id}`, /^1 found/);
			await page.keyboard.press("Enter");
			await selected(page, now => now === id);
			await page.keyboard.press("Escape"); // the finder
		};
		const wanted = id => JSON.parse(run(weft, "explain", "--json", `--promise=${id}`, "large.ctf").toString().split("\n")[0]).title;
		await about("120000");
		await page.keyboard.press("y");
		await about("50000");
		for (const key of ["y", "i"])
			await page.keyboard.press(key);
		await placed(page, where => /focus=50000/.test(where));
		await page.locator(".card.open").waitFor();
		assert.equal(await page.locator(".card.open [data-kind=finding] .name").textContent(), wanted("50000"));
		await close(page);
	},

	async "page without web workers works"() {
		const own = readFileSync(at("limits.html"), "latin1");
		writeFileSync(at("alone.html"), own.replace(" worker-src blob:;", " worker-src 'none';"), "latin1");
		const page = await open(file("alone.html"));
		await eventually("a red line", async () => await count(page, RED, ".surface") > 50);
		await page.getByRole("button", {name: "Findings: 1"}).click();
		await page.keyboard.press("Enter");
		await page.locator(".card.open").waitFor();
		page.complaints = page.complaints.filter(text => !/Creating a worker/.test(text));
		await close(page);
	},

	async "content security policy blocks network, eval and frames"() {
		const page = await open(file("limits.html"));
		const refused = await page.evaluate(async () => {
			const tries = {
				fetch: () => fetch("https://example.org/"),
				image: () => new Promise((resolve, reject) => Object.assign(new Image(), {onload: resolve, onerror: () => reject(new Error("image")), src: "https://example.org/a.png"})),
				eval: async () => globalThis.eval("1"),
				inline: () => new Promise((resolve, reject) => {
					const script = document.createElement("script");
					script.textContent = "globalThis.ran = true";
					document.body.append(script);
					globalThis.ran ? resolve() : reject(new Error("inline"));
				}),
				beacon: async () => {
					if (!navigator.sendBeacon("https://example.org/", "x"))
						throw new Error("beacon");
					await new Promise((resolve, reject) => addEventListener("securitypolicyviolation", () => reject(new Error("beacon"))));
				},
			};
			const names = [];
			for (const [name, attempt] of Object.entries(tries))
				await attempt().catch(() => names.push(name));
			return names;
		});
		assert.deepEqual(refused, ["fetch", "image", "eval", "inline", "beacon"]);
		assert.deepEqual(page.requests.filter(url => !/^(file|data|blob):/.test(url)).filter(url => !url.includes("example.org")), []);
		await page.context().close(); // the browser prints a message about each forbidden request
	},
};
