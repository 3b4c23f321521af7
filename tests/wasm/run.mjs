// Runs a program of WASI with the files of this machine: run.mjs PROGRAM.wasm ARGUMENT...
// SPDX-License-Identifier: ISC
import {readFileSync} from "node:fs";
import {WASI} from "node:wasi";

const wasi = new WASI({version: "preview1", args: process.argv.slice(2), env: process.env, preopens: {"/": "/"}, returnOnExit: true});
const {instance} = await WebAssembly.instantiate(readFileSync(process.argv[2]), {wasi_snapshot_preview1: wasi.wasiImport});
process.exitCode = wasi.start(instance);
