/* The core: one instance for each trace, so that closing one gives its memory back. */

const decoder = new TextDecoder();
const encoder = new TextEncoder();
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

/* The bytes of a text piece by piece, each when it is asked for. */
function streamOfBase64(text) {
	let at = 0;
	return new ReadableStream({
		pull(controller) {
			if (at < text.length) {
				controller.enqueue(fromBase64(text.slice(at, at += BASE64_PIECE)));
				return;
			}
			text = "";
			controller.close();
		},
	});
}

function gunzip(stream) {
	return stream.pipeThrough(new DecompressionStream("gzip"));
}

let compiled = null;

function compileCore() {
	compiled ??= new Response(gunzip(streamOfBase64(CORE))).arrayBuffer().then(bytes => WebAssembly.compile(bytes));
	return compiled;
}

class Core {
	static async create(measure) {
		const core = new Core();
		const unsupported = () => 52; /* ENOSYS: the core has no files */
		const instance = await WebAssembly.instantiate(await compileCore(), {
			wasi_snapshot_preview1: {
				fd_close: unsupported,
				fd_seek: unsupported,
				fd_write: unsupported,
				sched_yield: () => 0,
				random_get: (at, length) => (crypto.getRandomValues(core.bytes.subarray(at >>> 0, (at >>> 0) + length)), 0),
			},
			weft: {measure: (font, at, length) => measure(font, core.text(at >>> 0, length))},
		});
		core.call = instance.exports;
		core.call._initialize();
		return core;
	}

	/* Views become stale when memory grows. */
	get bytes() {
		if (this.view?.buffer !== this.call.memory.buffer)
			this.view = new Uint8Array(this.call.memory.buffer);
		return this.view;
	}

	text(at, length) {
		return decoder.decode(this.bytes.subarray(at, at + length));
	}

	/* A terminated one. */
	cstring(at) {
		at >>>= 0;
		return at ? this.text(at, this.bytes.indexOf(0, at) - at) : "";
	}

	/* Calls with a string, which the core sees while it runs. */
	withText(text, use) {
		const bytes = encoder.encode(text + "\0");
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
