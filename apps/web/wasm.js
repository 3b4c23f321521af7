/* Loads the core.  Each viewer has its own instance, and frees its memory at its end; so has each worker. */

const BASE64_PIECE = 1 << 18;

function fromBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const characters = atob(text);
	const bytes = new Uint8Array(characters.length);
	for (let i = 0; i < characters.length; i++)
		bytes[i] = characters.charCodeAt(i);
	return bytes;
}

/* Returns a stream that decodes a base64 text piece by piece, as it is read.  Its property `base64` is the whole text. */
function streamOfBase64(text) {
	let at = 0;
	const stream = new ReadableStream({
		pull(controller) {
			if (at < text.length) {
				controller.enqueue(fromBase64(text.slice(at, at += BASE64_PIECE)));
				return;
			}
			text = "";
			controller.close();
		},
	}, {highWaterMark: 0});
	return Object.assign(stream, {base64: text});
}

function gunzip(stream) {
	return stream.pipeThrough(new DecompressionStream("gzip"));
}

/* Returns a stream of the same bytes or, if these are compressed with gzip, of the decompressed bytes. */
async function decompressed(stream) {
	const reader = stream.getReader();
	let {done, value} = await reader.read();
	const isGzip = value?.[0] === 0x1f && value[1] === 0x8b;
	const whole = new ReadableStream({
		async pull(controller) {
			if (done) {
				controller.close();
				return;
			}
			controller.enqueue(value);
			({done, value} = await reader.read());
		},
	});
	return isGzip ? gunzip(whole) : whole;
}

/* Decodes the encoding of pack.py, in which 5 letters are 4 bytes. */
function unpack(text) {
	const codes = new Uint8Array(128), bytes = new DataView(new ArrayBuffer(text.length / 5 * 4));
	[...ALPHABET].forEach((letter, code) => codes[letter.charCodeAt(0)] = code);
	for (let i = 0; i < text.length / 5; i++) {
		let word = 0;
		for (let k = 5 * i; k < 5 * i + 5; k++)
			word = word * 85 + codes[text.charCodeAt(k)];
		bytes.setUint32(4 * i, word);
	}
	return new Response(gunzip(new Blob([bytes.buffer]).stream()));
}

let compiled = null;

function compileCore() {
	compiled ??= unpack(CORE).arrayBuffer().then(bytes => WebAssembly.compile(bytes));
	return compiled;
}

class Core {
	/* The core calls measure(font, text) for the width of a text, and progress(done) during long computations. */
	static async create(module, measure, progress) {
		const core = new Core();
		const unsupported = () => 52; /* ENOSYS: the core has no files */
		const instance = await WebAssembly.instantiate(module, {
			wasi_snapshot_preview1: {
				fd_close: unsupported,
				fd_seek: unsupported,
				fd_write: unsupported,
				sched_yield: () => 0,
				random_get: (at, length) => (crypto.getRandomValues(core.bytes.subarray(at >>> 0, (at >>> 0) + length)), 0),
			},
			weft: {measure: (font, at, length) => measure(font, core.text(at >>> 0, length)), progress},
		});
		core.decoder = new TextDecoder();
		core.encoder = new TextEncoder();
		core.call = instance.exports;
		core.call._initialize();
		return core;
	}

	/* The memory as bytes.  Creates a new view after memory has grown, which invalidates the old one. */
	get bytes() {
		if (this.view?.buffer !== this.call.memory.buffer)
			this.view = new Uint8Array(this.call.memory.buffer);
		return this.view;
	}

	text(at, length) {
		return this.decoder.decode(this.bytes.subarray(at, at + length));
	}

	/* Returns the NUL-terminated text at an address. */
	cstring(at) {
		at >>>= 0;
		return at ? this.text(at, this.bytes.indexOf(0, at) - at) : "";
	}

	/* Calls use(address) with a copy of the text in the core's memory, which is freed afterwards. */
	withText(text, use) {
		const bytes = this.encoder.encode(text + "\0");
		const at = this.call.malloc(bytes.length) >>> 0;
		if (!at)
			throw new Error("out of memory");
		this.bytes.set(bytes, at);
		try {
			return use(at);
		} finally {
			this.call.free(at);
		}
	}
}
