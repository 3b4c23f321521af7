// Runs a program of WASI with the files of this machine: run.mjs PROGRAM.wasm ARGUMENT...
// SPDX-License-Identifier: ISC
import {spawnSync} from "node:child_process";
import {readFileSync} from "node:fs";
import {fileURLToPath} from "node:url";
import {WASI} from "node:wasi";

const TRIES = 3;
const [program, ...args] = process.argv.slice(2);

if (process.env.WEFT_WASI_CHILD) {
	const wasi = new WASI({version: "preview1", args: [program, ...args], env: process.env, preopens: {"/": "/"}, returnOnExit: true});
	const {instance} = await WebAssembly.instantiate(readFileSync(program), {wasi_snapshot_preview1: wasi.wasiImport});
	process.exitCode = wasi.start(instance);
} else {
	// WebAssembly knows no signals: one is of node itself, whose version 20 now and then crashes beside its own threads.
	const env = {...process.env, WEFT_WASI_CHILD: "1"};
	let child;
	for (let i = 0; i < TRIES && (!child || child.signal); i++)
		child = spawnSync(process.execPath, ["--no-warnings", "--single-threaded", fileURLToPath(import.meta.url), program, ...args],
			{env, stdio: "inherit"});
	process.exitCode = child.status ?? 1;
}
